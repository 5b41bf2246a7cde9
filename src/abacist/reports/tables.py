"""Tables as plain data: declared once, rendered for a terminal, HTML or Markdown.

>>> table = Table("Seeds", ("seed", "exact match"), [[["0", Cell("100%", "good")]]])
>>> print(markdown(table))
| seed | exact match |
|---|---:|
| 0 | 100% |

`html_builder.table` and `terminal.Shown` are the other renderers.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import groupby

from abacist.intervals import Difference, Proportion, percent
from abacist.scoring.comparison import ComparedRow
from abacist.scoring.records import Failure, Feature, Row, Section, Solution
from abacist.training.metrics import Beginning, Repair

_MOST_SHOWN = 20
"""Number of failures and features in a table; the records hold more."""


class Cell(str):
    """Text with a style, for a cell of a table."""

    style: str
    """`good` and `bad` are coloured, `code` can be typed, and `prose` may hold `code` in backticks.

    A terminal understands the styles of rich as well.
    """

    def __new__(cls, text: str, style: str) -> "Cell":
        """Return the text with a style."""
        cell = super().__new__(cls, text)
        cell.style = style
        return cell


@dataclass(frozen=True)
class Table:
    """Rows in groups. A line break in a cell is kept."""

    caption: str
    columns: Sequence[str]
    groups: Sequence[Sequence[Sequence[str]]] = field(repr=False)
    num_text_columns: int = 1
    """The first columns hold words and are aligned left; the others hold numbers and are aligned right."""

    def _repr_markdown_(self) -> str:
        """What a notebook shows if the table is the last value of a cell."""
        return markdown(self)


def markdown(table: Table) -> str:
    """A table in Markdown, without its caption; groups are joined."""
    alignment = ["---"] * table.num_text_columns
    alignment += ["---:"] * (len(table.columns) - table.num_text_columns)
    rows = [table.columns, *(row for group in table.groups for row in group)]
    lines = [
        "|" + "".join(f" {cell} |" if cell else " |" for cell in row).replace("\n", "<br>")
        for row in rows
    ]
    lines.insert(1, "|" + "|".join(alignment) + "|")
    return "\n".join(lines)


def shortened(text: str) -> str:
    """A problem without the middles of its very long numbers, and with spaces around its operators.

    Short problems are returned as they are.
    """
    short = re.sub(r"[^-+*/%=,\s]{61,}", _cut, text)
    return text if short == text else re.sub(r" *([-+*/%=]+) *", r" \1 ", short)


def _cut(match: re.Match[str]) -> str:
    word = match[0]
    unit = "digits" if word.isdigit() else "characters"
    return f"{word[:24]}…{word[-24:]} ({len(word):,} {unit})"


def number(value: float | None, form: str) -> str:
    """A number in a format such as `.2f`, or a dash if it is None."""
    if value is None:
        return "–"
    text = format(value, form).replace("-", "−")
    # A number that is rounded to 0 has no sign.
    return text if any(digit in text for digit in "123456789") else text.lstrip("+−")


def points(fraction: float) -> str:
    """A difference of proportions in percentage points, with its sign."""
    return number(100 * fraction, "+.2f")


def interval(proportion: Proportion) -> str:
    """The 95 % interval of a proportion."""
    if proportion.interval is None:
        return "–"
    low, high = proportion.interval
    return f"{percent(low)} – {percent(high)}"


def exact(proportion: Proportion) -> str:
    """A proportion in percent; good if it has no errors."""
    if proportion.value is None:
        return "–"
    return Cell(percent(proportion.value), "bad" if proportion.errors else "good")


def score_table(caption: str, rows: Iterable[Row]) -> Table:
    """Every row of a section with its sample size, interval and margin."""
    groups = [
        [_score_row(row) for row in group]
        for _, group in groupby(rows, key=lambda row: (row.kind, row.measure))
    ]
    return Table(caption, ("problems", "right", "wrong", "n", "95% interval", "margin"), groups)


def telling_rows(section: Section, most: int = 5) -> list[Row]:
    """The rows of the suite `lengths` that say most about a run, in their order.

    These are problems as in training, a few lengths beyond training, and a carry through every
    digit. The rows with the most errors take the places that are left.
    """
    scored = [row for row in section.rows if row.proportion and row.proportion.n]
    equal = [row for row in scored if row.kind == "beyond" and "unequal" not in row.name]
    unequal = [row for row in scored if row.kind == "beyond" and "unequal" in row.name]
    probes = [row for row in scored if row.kind == "probe"]
    picks = [
        *scored[:1],
        *equal[len(equal) // 2 :][:1],
        *unequal[len(unequal) // 2 :][:1],
        *equal[-1:],
        *probes[-1:],
        *sorted(scored, key=lambda row: (row.proportion and row.proportion.value) or 0.0),
    ]
    names = list(dict.fromkeys(row.name for row in picks))[:most]
    return [row for row in section.rows if row.name in names]


def _score_row(row: Row) -> list[str]:
    margin = number(row.smallest_margin, ".2f")
    if row.proportion is None or row.proportion.value is None:
        label = f"{row.label}: {row.note}" if row.note else row.label
        return [label, "–", "–", "–", "–", margin]
    counts = (f"{row.proportion.errors:,}", f"{row.proportion.n:,}")
    # Probes are fixed problems and no sample, so there is nothing to infer from them.
    of_sample = "–" if row.kind == "probe" else interval(row.proportion)
    return [row.label, exact(row.proportion), *counts, of_sample, margin]


def feature_table(features: Sequence[Feature], errors: int) -> Table:
    """What the problems with a wrong answer have in common."""
    rows = []
    for feature in features[:_MOST_SHOWN]:
        share = feature.among_failures.value or 0.0
        ratio = f"{share / feature.expected:.1f} ×" if feature.expected else "–"
        label = f"{feature.name}: {feature.value}"
        rows.append([label, percent(share), percent(feature.expected), ratio])
    caption = f"What the {errors:,} failures have in common"
    return Table(caption, ("feature", "of failures", "expected", "ratio"), [rows])


def failure_table(failures: Sequence[Failure]) -> Table:
    """The first failures of a suite, with what the model answered."""
    rows = [
        [
            *(Cell(shortened(text), "code") for text in _texts(failure)),
            number(failure.first_wrong_place, ","),
            number(failure.carry_chain, ","),
            number(failure.margin, ".2f"),
        ]
        for failure in failures[:_MOST_SHOWN]
    ]
    more = len(failures) - _MOST_SHOWN
    caption = "Problems with a wrong answer, and the place of the first wrong digit (1 for units)"
    caption += f"; {more:,} more are in failures.jsonl" if more > 0 else ""
    columns = ("problem", "the model's answer", "right", "wrong place", "carry chain", "margin")
    return Table(caption, columns, [rows], num_text_columns=3)


def _texts(failure: Failure) -> tuple[str, str, str]:
    solution = failure.solution
    return solution.problem, solution.answer_text, solution.expected


def beginning_table(beginnings: Sequence[Beginning]) -> Table:
    """How good each of several beginnings was."""
    rows = [
        [
            f"{beginning.number + 1}",
            f"{beginning.step:,}",
            "–" if beginning.exact_match is None else str(beginning.exact_match),
            number(beginning.validation_loss, ".4g"),
        ]
        for beginning in beginnings
    ]
    columns = ("beginning", "steps", "exact match on validation problems", "loss")
    return Table("Beginnings, of which the best was trained to its end", columns, [rows])


def repair_table(repairs: Sequence[Repair]) -> Table:
    """What the checks before possible rounds of repairs found."""
    rows = [
        [
            f"{repair.step:,}",
            "all neighbourhoods" if repair.drawn is None else f"{repair.drawn:,} drawn problems",
            Cell(shortened(", ".join(repair.problems[:3])), "code"),
            f"{repair.wrong:,}",
            f"{len(repair.problems):,}",
        ]
        for repair in repairs
    ]
    columns = ("after step", "checked", "the first listed problems", "wrong", "listed")
    return Table("Checks before rounds of repairs", columns, [rows], num_text_columns=3)


def watched_table(watched: Sequence[tuple[int, Solution]]) -> Table:
    """The watched problems, with the model's answers before training and after it."""
    first, last = watched[0][0], watched[-1][0]
    before = {solution.problem: solution for step, solution in watched if step == first}
    after = {solution.problem: solution for step, solution in watched if step == last}
    rows = [
        [
            *(Cell(shortened(text), "code") for text in (problem, solution.expected)),
            *(_written(side[problem]) for side in (before, after) if problem in side),
            *(number(s[problem].perplexity, ".4g") for s in (before, after) if problem in s),
        ]
        for problem, solution in after.items()
        if problem in before
    ]
    columns = (
        "problem",
        "right",
        f"written at step {first:,}",
        f"written at step {last:,}",
        "perplexity before",
        "after",
    )
    return Table("Watched problems, before and after training", columns, [rows], num_text_columns=4)


def _written(solution: Solution) -> str:
    """What the model wrote, good or bad."""
    return Cell(shortened(solution.text), "good" if solution.correct else "bad")


OTHER_TRAINING = (
    "The runs were trained on different problems, so only rows of a stated length are shown."
)
"""What a comparison says of runs that `common_rows` compared by stated lengths only."""


def comparison_tables(names: Sequence[str], rows: Iterable[ComparedRow]) -> list[Table]:
    """The rows that all runs share, a table for each suite."""
    columns = ["problems", *(f"{name}\n(95% interval)" for name in names)]
    columns += difference_columns(names)
    return [
        Table(
            f"Suite {suite}",
            columns,
            [
                [_compared(row) for row in group]
                for _, group in groupby(of_suite, key=lambda row: (row.key.kind, row.key.measure))
            ],
        )
        for suite, of_suite in groupby(rows, key=lambda row: row.key.suite)
    ]


def _compared(row: ComparedRow) -> list[str]:
    shares = (f"{percent(p.successes / p.n)} of {p.n:,}\n({interval(p)})" for p in row.proportions)
    return [row.key.label, *shares, *map(difference_cell, row.differences)]


def difference_columns(names: Sequence[str]) -> list[str]:
    """The titles of the columns that hold differences from the first run or group."""
    titles = (f"{name} − {names[0]}" if len(names) > 2 else "difference" for name in names[1:])
    return [f"{title}, points\n(95% interval)" for title in titles]


def difference_cell(difference: Difference) -> str:
    """A difference in points with its interval; good or bad if the interval excludes 0."""
    low, high = difference.interval
    text = f"{points(difference.value)}\n({points(low)} to {points(high)})"
    return Cell(text, "good" if low > 0 else "bad" if high < 0 else "")
