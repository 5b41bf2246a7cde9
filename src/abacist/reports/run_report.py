"""The report of one run: what it is worth, how it came about, how to repeat it.

>>> html.write(run_report(records.read(directory)), directory.report)
"""

import itertools
import shlex
from collections.abc import Sequence

from abacist import recipes
from abacist.configuration import settings
from abacist.errors import ConfigurationError
from abacist.intervals import Proportion, percent
from abacist.recipes.recipe import Recipe
from abacist.reports import pictures, repeat
from abacist.reports.html import Part, page
from abacist.reports.html_builder import Markup, code, command, element, prose, table
from abacist.reports.pluralisation import cut
from abacist.reports.run_records import Records, ScoredRow, ScoredSection, Shared, Wrong
from abacist.tasks.config import ArithmeticConfig, SortingConfig

SUITES = {
    "lengths": "exact match by number of digits, in training and far beyond",
    "strata": "exact match by operation, length and carry chain; token accuracy; perplexity",
    "splits": "training, validation and test problems compared",
    "probes": "fixed problems: single digits, both orders, long carries, powers of ten",
    "grid": "every pair of operand lengths, as a heat map",
    "recurrences": "a looped model with 1, 2, 4, 8, 16 and 32 recurrences",
    "notation": "the same problems with other spaces than in training",
    "exhaustive": "every problem of a finite space",
    "counterexamples": "a search for a wrong answer",
}
"""What every suite adds to a report (`scoring/scorecard.py` has them, but imports torch)."""

_SHOWN_FAILURES = 20
"""Of a suite; `failures.jsonl` has the others."""
_MOST_ROWS = 400
"""Of a section; `scorecard.json` has the others."""


def run_report(records: Records) -> str:
    """A whole page."""
    parts = [_repeat(records), _training(records), _scores(records), _failures(records)]
    parts += [_attention(records), _embeddings(records), _missing(records), _settings(records)]
    return page(
        f"abacist report: {records.name}", _lead(records), [part for part in parts if part.content]
    )


def verdict(records: Records) -> Markup:
    """What the run is worth, in a few lines: the proof, and exact match with n and interval."""
    proof, lines = records.verdict, []
    if proof is None:
        remedy = _again(records, "prove", "No proof was tried. To try one, type ")
        lines.append(element("p", element("strong", "Not proved."), " ", *remedy))
    elif proof.certified:
        lines += [
            element("p", element("strong", "Certified:", class_="good"), f" {proof.reason}"),
            element(
                "p",
                f"{proof.neighbourhoods:,} neighbourhoods checked, {proof.wrong:,} wrong, smallest "
                f"margin {_figure(proof.smallest_margin, '.2f')} logits, of which an implementation "
                f"loses at most {_figure(proof.rounding_bound, '.2g')} by rounding.",
            ),
        ]
    else:
        strong = element("strong", "Not certified:", class_="bad")
        lines.append(element("p", strong, f" {proof.reason}"))
        if proof.counterexample:
            wrong = code(_shortened(proof.counterexample))
            lines.append(element("p", "A problem it gets wrong: ", wrong))
    found = headline(records)
    if found is not None:
        told, proportion = found
        lines.append(element("p", f"Exact match {proportion} on {told}."))
    kind = "" if proof is None else " good" if proof.certified else " bad"
    return element("div", *lines, class_="verdict" + kind)


def headline(records: Records) -> tuple[str, Proportion] | None:
    """The one proportion that says most, and what it is of."""
    for suite in ("lengths", "strata"):
        section = records.sections.get(suite)
        rows = section.rows[:1] if section else []
        if rows and rows[0].proportion is not None:
            return f"test problems ({rows[0].name})", rows[0].proportion
    if records.metrics:
        return "validation problems (never scored on test problems)", records.metrics[
            -1
        ].exact_match
    return None


def _lead(records: Records) -> list[Markup]:
    run = records.run
    seconds = f" in {records.metrics[-1].seconds:,.0f} s" if records.metrics else ""
    steps = f"{records.last_step or 0:,} of {records.recipe.training.num_steps:,} steps"
    parameters = f"{run['parameters']:,} parameters, " if _is_whole(run.get("parameters")) else ""
    lead = [
        element(
            "p",
            f"{_summary(records.recipe)}{parameters}trained for {steps}{seconds}.",
            class_="muted",
        ),
        verdict(records),
    ]
    ages = (records.scored_step, records.verdict.step if records.verdict else None)
    others = sorted({age for age in ages if age is not None and age != records.last_step})
    if others and records.last_step is not None:
        told = " and ".join(f"{age:,}" for age in others)
        lead.append(element("p", f"Scores or proof speak of the weights after step {told}."))
    if (records.last_step or 0) < records.recipe.training.num_steps:
        again = code(f"abacist train --resume --out {shlex.quote(str(records.path))}")
        lead.append(element("p", "Training is not finished. To go on, type ", again, "."))
    if records.damages:
        items = (element("li", damage) for damage in records.damages)
        lead.append(element("ul", *items, class_="damages"))
    return lead


def _summary(recipe: Recipe) -> str:
    try:
        return recipes.promise(recipe.name)[0].removesuffix(".") + ": "
    except KeyError:
        return ""


def _repeat(records: Records) -> Part:
    return Part("repeat", "How to repeat it", repeating(records))


def repeating(records: Records) -> list[Markup]:
    """The command that trains a run again, and what it was trained with."""
    run, typed = records.run, repeat.command(records.recipe, records.run)
    if typed is None:
        content = [
            element(
                "p",
                "No options of one command say these settings; ",
                code("run.json"),
                " beside this report holds them all.",
            )
        ]
    else:
        content = [command(typed)]
    told = {
        "abacist": run.get("abacist"),
        "commit": run.get("commit"),
        "torch": run.get("torch"),
        "Python": run.get("python"),
        "machine": run.get("machine"),
        "cores": run.get("cores"),
        "device": run.get("device"),
        "threads": run.get("threads"),
        "seed": run.get("seed"),
    }
    rows = [(name, str(value)) for name, value in told.items() if value is not None]
    return [*content, table("What it was trained with", ("what", "value"), [rows], texts=2)]


def _training(records: Records) -> Part:
    named = {records.name: records.metrics}
    found = [pictures.loss(named), pictures.validation(named)]
    drawn = [picture for picture in found if picture is not None]
    content = [element("div", *drawn, class_="pictures")] if drawn else []
    return Part("training", "Training", content)


def _scores(records: Records) -> Part:
    content: list[Markup] = []
    for suite, section in records.sections.items():
        content.append(element("h3", section.title, id=f"suite-{suite}"))
        content += _section(suite, section)
    if records.exempt_digits and content:
        content.append(
            element(
                "p",
                f"Problems of at most {records.exempt_digits} digits belong to all splits: "
                "training may have seen them.",
            )
        )
    if not content:
        content = [element("p", *_again(records, "score", "This run was never scored. Type "))]
    return Part("scorecard", "Scorecard", content)


def _section(suite: str, section: ScoredSection) -> list[Markup]:
    found: list[Markup | None] = []
    if suite == "lengths":
        series = {k: rows for k, rows in pictures.length_series(section).items() if rows}
        found.append(pictures.by_length(series, pictures.trained_digits(section)))
    if suite == "strata":
        found += [pictures.by_carry_chain(section), pictures.by_place(section)]
    if section.grid is not None:
        found.append(pictures.length_grid(section.grid))
    drawn = [picture for picture in found if picture is not None]
    content = [element("div", *drawn, class_="pictures")] if drawn else []
    if not section.complete:
        content.append(element("p", element("strong", "Interrupted before its end.", class_="bad")))
    content += [element("p", f"{remark}.") for remark in section.remarks]
    content.append(
        table(
            f"{section.title}: {section.errors:,} problems answered wrongly in all",
            ("problems", "right", "wrong", "n", "95 % interval", "margin"),
            _groups(section.rows[:_MOST_ROWS]),
        )
    )
    if len(section.rows) > _MOST_ROWS:
        more = len(section.rows) - _MOST_ROWS
        content.append(element("p", f"{more:,} more rows are in ", code("scorecard.json"), "."))
    return content


def _groups(rows: Sequence[ScoredRow]) -> list[list[list[str]]]:
    """Cells of rows, those of one kind and measure together."""
    return [
        [_cells(row) for row in group]
        for _, group in itertools.groupby(rows, key=lambda row: (row.kind, row.measure))
    ]


def _cells(row: ScoredRow) -> list[str]:
    name = row.name if row.measure == "exact match" else f"{row.name} ({row.measure})"
    margin = _figure(row.margin, ".2f")
    match = row.proportion
    if match is None or match.value is None or match.interval is None:
        return [f"{name}: {row.note}" if row.note else name, "–", "–", "–", "–", margin]
    low, high = match.interval
    share = element("strong", percent(match.value), class_="good" if not match.errors else "bad")
    interval = f"{percent(low)} – {percent(high)}"
    return [name, share, f"{match.errors:,}", f"{match.n:,}", interval, margin]


def _failures(records: Records) -> Part:
    content: list[Markup] = []
    suites = dict.fromkeys([*records.sections, *(failure.suite for failure in records.failures)])
    for suite in suites:
        wrong = [failure for failure in records.failures if failure.suite == suite]
        section = records.sections.get(suite)
        shared = section.shared if section else []
        if not wrong and not shared:
            continue
        content.append(element("h3", f"Suite {suite}"))
        if shared:
            assert section is not None
            content.append(_shared(shared, section.errors))
        if wrong:
            content.append(_wrong(wrong))
    if not content and records.sections:
        content = [element("p", "No problem of these suites was answered wrongly.")]
        if any(section.errors for section in records.sections.values()):
            content = [element("p", "The problems answered wrongly were not kept.")]
    return Part("failures", "Failures", content)


def _shared(shared: Sequence[Shared], errors: int) -> Markup:
    rows = [
        [
            f"{feature.name}: {feature.value}",
            percent(feature.among_failures.value or 0.0),
            percent(feature.expected),
            f"{(feature.among_failures.value or 0.0) / feature.expected:.1f} ×"
            if feature.expected
            else "–",
        ]
        for feature in shared[:_SHOWN_FAILURES]
    ]
    header = ("feature", "of failures", "expected", "ratio")
    return table(f"What the {errors:,} failures have in common", header, [rows])


def _wrong(failures: Sequence[Wrong]) -> Markup:
    rows = [
        [
            code(_shortened(failure.problem)),
            code(_shortened(failure.answer)),
            code(_shortened(failure.expected)),
            _figure(failure.first_wrong_place, ","),
            _figure(failure.carry_chain, ","),
            _figure(failure.margin, ".2f"),
        ]
        for failure in failures[:_SHOWN_FAILURES]
    ]
    more = len(failures) - _SHOWN_FAILURES
    caption = "Problems answered wrongly, with the place of the first wrong digit (1 for units)"
    caption += f"; {more:,} more are in failures.jsonl" if more > 0 else ""
    header = ("problem", "the model's answer", "right", "wrong place", "carry chain", "margin")
    return table(caption, header, [rows], texts=3)


def _attention(records: Records) -> Part:
    """What every head looks at: drawn by difference of place, told by field as well."""
    attended = records.attended
    if attended is None:
        return Part("attention", "Attention by place", [])
    heads = [head for layer in attended.weight for head in layer][: pictures.MOST_HEADS]
    pairs = [
        (f, d)
        for f in range(len(attended.fields))
        for d in range(len(attended.differences))
        if max(head[f][d] for head in heads) >= pictures.ATTENDED
    ]
    rows = [
        [name, *(f"{100 * head[f][d]:.1f}%" for f, d in pairs)]
        for name, head in zip(pictures.head_names(attended), heads, strict=False)
    ]
    names = [f"{attended.fields[f]} {attended.differences[d]}" for f, d in pairs]
    caption = (
        "Mean attention by field, and by place of the key minus place of the query "
        f"(n = {attended.num_tokens:,} answer tokens)"
    )
    content = [pictures.place_attention(attended), table(caption, ("head", *names), [rows])]
    more = sum(map(len, attended.weight)) - len(heads)
    if more:
        content.append(element("p", f"{more:,} more heads are in ", code("attention.json"), "."))
    return Part("attention", "Attention by place", content)


def _embeddings(records: Records) -> Part:
    drawn = pictures.embeddings(records.embeddings) if records.embeddings else []
    if not drawn:
        return Part("embeddings", "Embeddings while training", [])
    moving, *others = drawn
    hold = element("input", type="checkbox", id="hold", class_="hold")
    stage = element("div", hold, element("label", " hold still", for_="hold"), moving)
    content = [element("div", stage, *others, class_="pictures")]
    return Part("embeddings", "Embeddings while training", content)


def _missing(records: Records) -> Part:
    """What could be here, and the command that makes it."""
    path = shlex.quote(str(records.path))
    items = [
        (f"abacist score {path} --suite {name}", told)
        for name, told in SUITES.items()
        if name not in records.sections and _has_use(name, records.recipe)
    ]
    if records.verdict is None:
        items.append((f"abacist prove {path}", "a proof for problems of every length"))
    if not records.embeddings:
        typed = repeat.command(records.recipe, records.run)
        if typed is not None:
            every = max(1, records.recipe.training.num_steps // 8)
            items.append(
                (
                    f"{typed} --training.record_embeddings_every {every}",
                    "embeddings while training, in a new run",
                )
            )
    if not items:
        return Part("missing", "What is missing", [])
    rows = [[told, code(typed)] for typed, told in items]
    note = element("p", "Then type ", code(f"abacist report {path}"), " again.")
    return Part(
        "missing",
        "What is missing",
        [
            table("What this report has not, and what makes it", ("part", "type"), [rows], texts=2),
            note,
        ],
    )


def _has_use(suite: str, recipe: Recipe) -> bool:
    """Whether a suite is worth proposing; in doubt yes, as the command says why where it is not."""
    task = recipe.task
    if suite == "grid":
        return isinstance(task, ArithmeticConfig) and task.max_operands == 2
    if suite == "exhaustive" and isinstance(task, ArithmeticConfig):
        problems = len(task.operations) * 10.0 ** (task.max_operands * task.longest_operand)
        return problems <= recipe.scoring.largest_space
    if suite == "exhaustive":
        return task.kind == "modular-addition"
    if suite == "recurrences":
        return recipe.model.recurrences > 1
    if suite == "notation":
        return getattr(recipe.format, "spaces", "none") != "none"
    return suite != "probes" or isinstance(task, ArithmeticConfig | SortingConfig)


def _settings(records: Records) -> Part:
    content: list[Markup] = []
    try:
        base = recipes.find(records.recipe.name)
    except ConfigurationError:
        base = None
    if base is not None:
        changes = repeat.changed(base, records.recipe)
        if changes:
            rows = [[code(name), new, old] for name, (old, new) in changes.items()]
            caption = f"Settings changed from the recipe {records.recipe.name}"
            content.append(table(caption, ("setting", "here", "in the recipe"), [rows], texts=3))
        else:
            content.append(element("p", "All settings are the recipe's own."))
    groups = itertools.groupby(
        [s for s in settings(records.recipe) if s.name != "name" and s.typed != "(as below)"],
        key=lambda setting: setting.name.partition(".")[0],
    )
    rows_by_part = [
        [[code(setting.name), setting.typed, prose(setting.help)] for setting in group]
        for _, group in groups
    ]
    header = ("setting", "value", "what it is")
    content.append(table("All settings", header, rows_by_part, texts=3))
    return Part("settings", "Settings", content)


def _again(records: Records, verb: str, begin: str) -> list[str]:
    return [begin, code(f"abacist {verb} {shlex.quote(str(records.path))}"), "."]


def _figure(value: float | None, form: str) -> str:
    return "–" if value is None else format(value, form).replace("-", "−")


def _shortened(text: str) -> str:
    """A problem with very long numbers cut in the middle."""
    words = text.replace("+", " + ").replace("=", " = ").split(" ") if len(text) > 60 else [text]
    return " ".join(map(cut, words))


def _is_whole(value: object) -> bool:
    return type(value) is int
