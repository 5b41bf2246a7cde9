"""How scorecards, certificates and solutions look on a terminal."""

import shlex
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path

from rich import box
from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from abacist.certificates.certificate import Certificate
from abacist.cli.heat_map import HeatMap
from abacist.formats.annotated import EVERYWHERE, NO_PLACE, AnnotatedTokens, Field
from abacist.intervals import Difference, Proportion, percent
from abacist.models.parameter_count import Component
from abacist.reports.pluralisation import cut, points, remarks
from abacist.runs.outcome import Distribution
from abacist.scoring.comparison import ComparedRow
from abacist.scoring.scorecard import Scorecard
from abacist.scoring.solving import Solution
from abacist.scoring.suite import Section
from abacist.vocabulary import Vocabulary

_SHOWN_FEATURES = 12


def console() -> Console:
    """Standard output; plain where it is no terminal or NO_COLOR is set."""
    return Console(highlight=False)


def scorecard(card: Scorecard) -> Group:
    """A table of rows with n and interval for every section, and what its failures have in common."""
    parts: list[RenderableType] = []
    for name, section in card.sections.items():
        # Not the table's own title, which would be broken at the table's width.
        parts += [Text(section.title, style="italic"), _rows(section)]
        if name == "grid":
            parts.append(HeatMap(section.details["right"], section.details["count"]))
        parts += [f"{told}\n" for told in remarks(section.details)]
        if section.features:
            parts.append(_common(section))
    if card.exempt_digits:
        parts.append(
            f"Problems of at most {card.exempt_digits} digits belong to all splits: "
            "training may have seen them."
        )
    return Group(*parts)


def _rows(section: Section) -> Table:
    """Rows of one suite; `right` is of what the measure says where that is not exact match."""
    table = Table(box=box.SIMPLE_HEAD)
    for name in ("problems", "right", "wrong", "n", "95% interval", "margin"):
        table.add_column(
            name, justify="left" if name == "problems" else "right", no_wrap=name != "problems"
        )
    group = None
    for row in section.rows:
        if group not in (None, (row.kind, row.measure)):
            table.add_section()
        group = (row.kind, row.measure)
        margin = "–" if row.smallest_margin is None else f"{row.smallest_margin:.2f}"
        match = row.proportion
        if match is None or match.value is None or match.interval is None:
            table.add_row(row.name, "–", "–", "–", row.note or "–", margin)
            continue
        low, high = match.interval
        table.add_row(
            row.name,
            Text(percent(match.value), style="green" if not match.errors else "red"),
            f"{match.errors:,}",
            f"{match.n:,}",
            f"{percent(low)} – {percent(high)}",
            margin,
        )
    return table


def seeds(distribution: Distribution) -> Group:
    """A row for each seed, and what they are together."""
    table = Table(title="Seeds", title_justify="left", box=box.SIMPLE_HEAD)
    for name in ("seed", "steps", "seconds", "to target", "exact match", "errors", "certified"):
        table.add_column(name, justify="right", no_wrap=True)
    for outcome in distribution.outcomes:
        exact = outcome.exact_match.value
        table.add_row(
            str(outcome.seed),
            f"{outcome.steps:,}",
            f"{outcome.seconds:.1f}",
            "–" if outcome.steps_to_target is None else f"{outcome.steps_to_target:,}",
            "stopped" if exact is None else percent(exact),
            Text(
                f"{outcome.errors:,}" if exact is not None else "–",
                "green" if outcome.is_right else "red",
            ),
            "yes" if outcome.certified else "no",
        )
    values = distribution.to_json()
    lines = [f"without an error: {distribution.without_error}"]
    lines.append(f"certified: {distribution.certified}")
    if values["worst_exact_match"] is not None:
        lines.append(
            f"exact match on problems as in training: median {percent(values['median_exact_match'])}, "
            f"worst {percent(values['worst_exact_match'])} "
            f"(n = {max(o.exact_match.n for o in distribution.outcomes):,} a seed)"
        )
    steps = values["median_steps_to_target"]
    reached = sum(o.steps_to_target is not None for o in distribution.outcomes)
    lines.append(
        f"steps to the target on validation: median {'–' if steps is None else f'{steps:,.0f}'}, "
        f"reached by {reached} of {len(distribution.outcomes)}"
    )
    lines += [f"seed {o.seed}: {o.failure}" for o in distribution.outcomes if o.failure]
    return Group(table, *[Text(line) for line in lines])


def _common(section: Section) -> Table:
    """What the problems answered wrongly have in common."""
    table = Table(
        title=f"What the {section.errors:,} failures have in common",
        title_justify="left",
        box=box.SIMPLE_HEAD,
    )
    for name in ("feature", "of failures", "expected", "ratio"):
        table.add_column(name, justify="left" if name == "feature" else "right")
    for feature in section.features[:_SHOWN_FEATURES]:
        share = feature.among_failures.value or 0.0
        table.add_row(
            f"{feature.name}: {feature.value}",
            percent(share),
            percent(feature.expected),
            f"{share / feature.expected:.1f} ×",
        )
    return table


def comparison(names: list[str], rows: list[ComparedRow]) -> Group:
    """Shared rows of several runs: a table for every suite."""
    tables: list[RenderableType] = []
    suites = dict.fromkeys(row.suite for row in rows)
    for suite in suites:
        table = Table(title=f"Suite {suite}", title_justify="left", box=box.SIMPLE_HEAD)
        table.add_column("problems")
        for name in names:
            table.add_column(f"{name}\n(95% interval)", justify="right")
        for name in names[1:]:
            title = "difference" if len(names) == 2 else f"{name} − {names[0]}"
            table.add_column(f"{title}\n(points, 95%)", justify="right")
        kind = None
        for row in rows:
            if row.suite != suite:
                continue
            if kind not in (None, row.kind):
                table.add_section()
            kind = row.kind
            table.add_row(
                row.name, *map(_told, row.proportions), *map(_difference, row.differences)
            )
        tables.append(table)
    return Group(*tables)


def _told(proportion: Proportion) -> str:
    if proportion.value is None or proportion.interval is None:
        return "–"
    low, high = proportion.interval
    return f"{percent(proportion.value)} of {proportion.n:,}\n{percent(low)} – {percent(high)}"


def _difference(found: Difference | None) -> Text:
    """Coloured where the interval leaves out 0."""
    if found is None:
        return Text("–")
    low, high = found.interval
    style = "green" if low > 0 else "red" if high < 0 else ""
    return Text(f"{points(found.value)}\n{points(low)} to {points(high)}", style=style)


def certificate(outcome: Certificate) -> Text:
    """What was proved, in a few lines."""
    if not outcome.certified:
        text = Text.assemble(("NOT CERTIFIED: ", "bold red"), outcome.reason)
        if outcome.counterexample is not None:
            text.append(f"\n  a problem it gets wrong: {short(outcome.counterexample)}")
        return text
    return Text.assemble(
        ("CERTIFIED: ", "bold green"),
        outcome.reason,
        f"\n  {outcome.neighbourhoods:,} neighbourhoods checked, {outcome.wrong} wrong, "
        f"smallest margin {outcome.smallest_margin:.2f} logits, of which an implementation in "
        f"{outcome.precision} loses at most {outcome.rounding_bound:.2g}; {outcome.seconds:.1f} s",
    )


_NAME_WIDTH = 9
_PLACES = {NO_PLACE: "·", EVERYWHERE: "*"}
_FIELD_STYLES = {
    Field.START: ("s", "dim"),
    Field.OPERATOR: ("o", "magenta"),
    Field.EQUALS: ("=", "magenta"),
    Field.ANSWER: ("A", "green"),
    Field.SCRATCH: ("w", "bright_black"),
    Field.SPACE: ("_", "dim"),
    Field.LABEL: ("l", "magenta"),
}
_OPERAND_STYLES = ("cyan", "yellow", "blue")


def annotated(lines: AnnotatedTokens, row: int, vocabulary: Vocabulary, columns: int) -> Text:
    """One line as written, with its places, fields and targets underneath, in columns that line up.

    Long lines go on below, so many tokens at a time.
    """
    count = int(lines.lengths[row])
    levels = {"place": lines.place, "row": lines.row, "step": lines.step}
    told = {name: tensor for name, tensor in levels.items() if tensor is not None}
    rows: dict[str, list[str]] = {name: [] for name in ("token", *told, "field", "target")}
    if lines.labels is not None:
        rows["label"] = []
    styles = []
    for column in range(count):
        field = int(lines.field[row, column])
        operand = field - Field.OPERAND
        letter, style = (
            (chr(ord("a") + operand), _OPERAND_STYLES[operand % len(_OPERAND_STYLES)])
            if operand >= 0
            else _FIELD_STYLES[Field(field)]
        )
        rows["token"].append(vocabulary.tokens[int(lines.ids[row, column])])
        for name, tensor in told.items():
            place = int(tensor[row, column])
            rows[name].append(_PLACES.get(place, str(place)))
        rows["field"].append(letter)
        rows["target"].append("x" if lines.target[row, column] else " ")
        if lines.labels is not None:
            label = vocabulary.tokens[int(lines.labels[row, column])]
            rows["label"].append(label if lines.target[row, column] else " ")
        styles.append(style)
    widths = [max(len(cells[i]) for cells in rows.values()) for i in range(count)]
    text = Text()
    begin = 0
    while begin < count:
        end, room = begin, columns - _NAME_WIDTH
        while end < count and (end == begin or widths[end] + 1 <= room):
            room -= widths[end] + 1
            end += 1
        for name, cells in rows.items():
            text.append(f"  {name:7}", style="dim")
            for i in range(begin, end):
                text.append(f" {cells[i]:>{widths[i]}}", style=styles[i])
            text.append("\n")
        begin = end
        text.append("\n" if begin < count else "")
    return text


def components(parts: list[Component], tokens: int, predicting: int) -> Table:
    """Parts of a model with what they cost."""
    table = Table(
        title=f"For lines of {tokens} tokens, {predicting} of them predicted (means of training)",
        title_justify="left",
        box=box.SIMPLE_HEAD,
    )
    for name in ("component", "shape", "times", "parameters", "multiply-adds"):
        table.add_column(name, justify="left" if name in ("component", "shape") else "right")
    for part in parts:
        table.add_row(
            part.name,
            part.shape,
            f"{part.count}",
            f"{part.parameters:,}",
            f"{part.multiply_adds:,}" if part.multiply_adds else "–",
        )
    return table


def histogram(title: str, counts: Mapping[int, int]) -> Table:
    """Counts with bars."""
    table = Table(title=title, title_justify="left", box=None, show_header=False)
    largest, total = max(counts.values()), sum(counts.values())
    for value, count in counts.items():
        bar = "█" * max(1, round(30 * count / largest))
        table.add_row(f"{value:>4}", f"{count:>11,}", percent(count / total).rjust(7), bar)
    return table


def command(*words: str) -> str:
    """A command line that works as printed, also where `abacist` is not on the path."""
    program = "abacist"
    if shutil.which(program) is None and Path(sys.argv[0]).name == program:
        program = sys.argv[0]
    return shlex.join([program, *words])


def short(solution: Solution) -> str:
    """A solution with very long numbers cut in the middle."""
    text = str(solution)
    words = text.replace("+", " + ").replace("=", " = ").split(" ")
    return " ".join(cut(word) for word in words)
