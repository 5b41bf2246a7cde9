"""The report of one run: what it is worth, how it was trained, and how to repeat it.

Results come first, and what the run was trained with comes last.

>>> html.write(run_report(run_records.read(directory)), directory.report)
"""

import itertools
from collections.abc import Sequence

from abacist import extensions, recipes
from abacist.configuration import settings
from abacist.errors import ConfigurationError
from abacist.intervals import Proportion
from abacist.recipes.recipe import Recipe
from abacist.reports import (
    certificate_picture,
    lens_views,
    repeat_command,
    run_records,
    score_plots,
    svg,
    training_plots,
)
from abacist.reports.html import Part, page
from abacist.reports.html_builder import Markup, code, command, element, figure, table
from abacist.reports.plot_tables import as_table
from abacist.reports.plots import Bars, HeatMap, LineChart
from abacist.reports.run_records import RunRecords
from abacist.reports.tables import (
    Cell,
    Table,
    beginning_table,
    failure_table,
    feature_table,
    number,
    repair_table,
    score_table,
    shortened,
    watched_table,
)
from abacist.scoring.records import Section
from abacist.tasks.config import ArithmeticConfig, SortingConfig

SUITES = {
    "lengths": "exact match by number of digits, in training and far beyond",
    "strata": "exact match by operation, length and carry chain; exact answer; token accuracy; perplexity",
    "splits": "training, validation and test problems compared",
    "probes": "fixed problems: single digits, both orders, long carries, powers of ten",
    "grid": "every pair of operand lengths, as a heat map for each number of recurrences",
    "recurrences": "a looped model with 1, 2, 4, 8, 16 and 32 recurrences",
    "notation": "the same problems with other spaces than in training",
    "exhaustive": "every problem of a finite space",
    "counterexamples": "a search for a wrong answer",
}
"""What every suite adds to a report (`scoring/scorecard.py` has them, but imports torch)."""

_MOST_ROWS = 400
"""Rows of a section in a report; `scorecard.json` has the others."""


def run_report(records: RunRecords) -> str:
    """Return the HTML page about a run, made from its records."""
    again = repeat_command.command(records.recipe, records.run)
    parts = [
        Part("scorecard", "Scorecard", _scores(records)),
        Part("failures", "Failures", _failures(records)),
        Part("certificate", "All neighbourhoods", _certificate(records)),
        Part("training", "Training", _training(records)),
        Part("attention", "Attention by place", _attention(records)),
        Part("embeddings", "Embeddings during training", _embeddings(records)),
        Part("missing", "What is missing", _missing(records, again)),
        Part("repeat", "How to repeat it", repeating(records, again)),
        Part("settings", "Settings", _settings(records)),
    ]
    return page(
        f"abacist report: {records.name}", _lead(records), [part for part in parts if part.content]
    )


def figures(plots: Sequence[LineChart | HeatMap | Bars]) -> list[Markup]:
    """Plots side by side; nothing if there are none."""
    return [element("div", *map(svg.figure, plots), class_="pictures")] if plots else []


def verdict(records: RunRecords) -> Markup:
    """What the run is worth in a few lines: the proof, and exact match with n and interval."""
    proof, lines = records.certificate, []
    if proof is None:
        strong = element("strong", "Not proved.")
        lines.append(
            element(
                "p", strong, " No proof was tried. To try one, type ", _type(records, "prove"), "."
            )
        )
    elif proof.certified:
        checked = (
            f"{proof.neighbourhoods:,} neighbourhoods checked, {proof.wrong:,} wrong, smallest "
            f"margin {number(proof.smallest_margin, '.2f')} logits, {proof.rounding}."
        )
        strong = element("strong", "Certified:", class_="good")
        lines += [element("p", strong, f" {proof.reason}"), element("p", checked)]
    else:
        strong = element("strong", "Not certified:", class_="bad")
        lines.append(element("p", strong, f" {proof.reason}"))
        if proof.counterexample is not None:
            solution = proof.counterexample
            text = f"{solution.problem}={solution.answer_text}, right is {solution.expected}"
            wrong = code(shortened(text))
            lines.append(element("p", "A problem with a wrong answer: ", wrong))
    best = headline(records)
    if best is not None:
        sample, proportion = best
        lines.append(element("p", f"Exact match {proportion} on {sample}."))
    kind = "" if proof is None else " good" if proof.certified else " bad"
    return element("div", *lines, class_="verdict" + kind)


def headline(records: RunRecords) -> tuple[str, Proportion] | None:
    """The most telling proportion, with the name of its sample."""
    for suite in ("lengths", "strata"):
        section = records.sections.get(suite)
        rows = section.rows[:1] if section else []
        if rows and rows[0].proportion is not None:
            return f"test problems ({rows[0].name})", rows[0].proportion
    if records.metrics:
        sample = "validation problems (never scored on test problems)"
        return sample, records.metrics[-1].exact_match
    return None


def _lead(records: RunRecords) -> list[Markup]:
    num_parameters = records.run.get("parameters")
    seconds = f" in {records.metrics[-1].seconds:,.0f} s" if records.metrics else ""
    done, planned = records.last_step or 0, records.recipe.training.num_steps
    repairs = f" and {done - planned:,} of repairs" if done > planned else ""
    steps = f"{min(done, planned):,} of {planned:,} steps{repairs}"
    parameters = f"{num_parameters:,} parameters, " if type(num_parameters) is int else ""
    summary = f"{_description(records.recipe)}; {parameters}trained for {steps}{seconds}."
    lead = [element("p", summary, class_="muted"), verdict(records)]
    if records.chosen_step is not None:
        chosen = f"All results are those of the checkpoint at step {records.chosen_step:,}."
        lead.insert(1, element("p", chosen))
    if done < planned:
        resume = code(_typed(records, "train", "--resume", "--out", str(records.path)))
        lead.append(element("p", "Training is not finished. To resume it, type ", resume, "."))
    if records.damages:
        lead.append(damage_list(records.damages))
    return lead


def damage_list(damages: Sequence[str]) -> Markup:
    """What could not be read."""
    return element("ul", *(element("li", damage) for damage in damages), class_="damages")


def _description(recipe: Recipe) -> str:
    """The recipe of the run and how far the run departs from it; not what the recipe promises."""
    base = _recipe_of_that_name(recipe)
    if base is None:
        return f"Recipe {recipe.name}"
    count = len(repeat_command.changed(base, recipe))
    return f"Recipe {recipe.name}, {count or 'no'} setting{'s' * (count != 1)} changed"


def _recipe_of_that_name(recipe: Recipe) -> Recipe | None:
    try:
        return recipes.find(recipe.name)
    except ConfigurationError:
        return None


def _certificate(records: RunRecords) -> list[Markup]:
    """One tile for each neighbourhood that was checked."""
    proof = records.certificate
    if proof is None or not proof.neighbourhoods:
        return []
    if proof.certified:
        caption = (
            f"One tile for each of the {proof.neighbourhoods:,} neighbourhoods: everything that the "
            "receptive field of one token can hold, however long the numbers are. The model was "
            "right in each of them, so it is right at every length."
        )
    else:
        caption = (
            f"One tile for each of the {proof.neighbourhoods:,} neighbourhoods that were checked; "
            f"{proof.wrong:,} are wrong, which are drawn first and darker."
        )
    picture = certificate_picture.tiles([proof.neighbourhoods], num_wrong=proof.wrong)
    return [figure(picture, caption)]


def repeating(records: RunRecords, typed: str | None) -> list[Markup]:
    """The command that trains a run again, if there is one, and what it was trained with."""
    run = records.run
    if typed is None:
        sentence = "No options of one command express these settings; "
        content = [element("p", sentence, code("run.json"), " beside this report holds them all.")]
    else:
        content = [command(typed)]
    keys = ("abacist", "commit", "torch", "python", "machine", "cores", "device", "threads", "seed")
    rows = [
        (key.replace("python", "Python"), str(run[key])) for key in keys if run.get(key) is not None
    ]
    rows += [
        (name, ", ".join(f"{key} {value}" for key, value in run[name].items()))
        for name in ("gpu", "libraries")
        if isinstance(run.get(name), dict)
    ]
    if records.weights_bytes is not None:
        rows.append(("size of the saved weights", f"{records.weights_bytes:,} bytes"))
    return [*content, table(Table("What it was trained with", ("what", "value"), [rows], 2))]


def _training(records: RunRecords) -> list[Markup]:
    """Curves of the training, its beginnings and repairs, and the watched problems before and after it."""
    content = figures(training_plots.of_run(records.metrics, records.losses))
    if records.beginnings:
        content.append(table(beginning_table(records.beginnings)))
    if records.repairs:
        content.append(table(repair_table(records.repairs)))
    if records.watched:
        content.append(table(watched_table(records.watched)))
    return content


def _scores(records: RunRecords) -> list[Markup]:
    content: list[Markup] = []
    for suite, section in records.sections.items():
        content.append(element("h3", section.title, id=f"suite-{suite}"))
        content += _section(suite, section)
    if not content:
        return [element("p", "This run was never scored. Type ", _type(records, "score"), ".")]
    note = exemption(records.scorecard.exempt_digits)
    return [*content, element("p", note)] if note else content


def exemption(digits: int) -> str:
    """Return a note about problems that belong to all splits; empty if there are none."""
    if not digits:
        return ""
    return (
        f"Problems of at most {digits} digits belong to all splits: "
        "the model may have seen them in training."
    )


def _section(suite: str, section: Section) -> list[Markup]:
    content = figures(score_plots.of_section(suite, section))
    if not section.complete:
        content.append(element("p", element("strong", "Interrupted before its end.", class_="bad")))
    content += [element("p", f"{remark}.") for remark in score_plots.remarks(section)]
    caption = f"{section.title}: {section.errors:,} problems with a wrong answer in all"
    content.append(table(score_table(caption, section.rows[:_MOST_ROWS])))
    if len(section.rows) > _MOST_ROWS:
        more = len(section.rows) - _MOST_ROWS
        content.append(element("p", f"{more:,} more rows are in ", code("scorecard.json"), "."))
    return content


def _failures(records: RunRecords) -> list[Markup]:
    content: list[Markup] = []
    for suite in dict.fromkeys([*records.sections, *records.failures]):
        section, failures = records.sections.get(suite), records.failures.get(suite)
        tables = []
        if section is not None and section.features:
            tables.append(feature_table(section.features, section.errors))
        if failures:
            tables.append(failure_table(failures))
        if tables:
            content += [element("h3", f"Suite {suite}"), *map(table, tables)]
    if content or not records.sections:
        return content
    if any(section.errors for section in records.sections.values()):
        return [element("p", "The problems with a wrong answer were not kept.")]
    return [element("p", "No problem of these suites has a wrong answer.")]


def _attention(records: RunRecords) -> list[Markup]:
    """What every head looks at: drawn by difference of place, and as a table by field as well."""
    if records.attention is None:
        return []
    by_difference, by_field, *notes = lens_views.views("place-attention", records.attention)
    assert isinstance(by_difference, HeatMap)
    assert isinstance(by_field, HeatMap)
    return [
        svg.figure(by_difference),
        table(as_table(by_field)),
        *(element("p", str(note)) for note in notes),
    ]


def _embeddings(records: RunRecords) -> list[Markup]:
    plots = score_plots.embeddings(
        records.embeddings, records.symbols, run_records.num_symbols(records.recipe)
    )
    if not plots:
        return []
    moving, *still = plots
    hold = element("input", type="checkbox", id="hold", class_="hold")
    label = element("label", " hold still", for_="hold")
    stage = element("div", hold, label, svg.figure(moving, moving=True))
    return [element("div", stage, *map(svg.figure, still), class_="pictures")]


def _missing(records: RunRecords, typed: str | None) -> list[Markup]:
    """What could be in the report, and the command that adds it; `typed` trains the run again."""
    path = str(records.path)
    rows = [
        [summary, Cell(_typed(records, "score", path, "--suite", name), "code")]
        for name, summary in SUITES.items()
        if name not in records.sections and _applies(name, records.recipe)
    ]
    if records.certificate is None:
        proof = Cell(_typed(records, "prove", path), "code")
        rows.append(["a proof for problems of every length", proof])
    if not records.embeddings and typed is not None:
        every = max(1, records.recipe.training.num_steps // 8)
        again = Cell(f"{typed} --training.record_embeddings_every {every}", "code")
        rows.append(["embeddings during training, in a new run", again])
    if not rows:
        return []
    caption = "What this report does not have, and the command that adds it"
    note = element("p", "Then type ", code(_typed(records, "report", path)), " again.")
    return [table(Table(caption, ("part", "type"), [rows], 2)), note]


def _typed(records: RunRecords, *words: str) -> str:
    """Return a command line about the run, with the options that load its extensions."""
    return extensions.command(*words, record=records.run)


def _applies(suite: str, recipe: Recipe) -> bool:
    """Whether a suite is worth proposing. If in doubt it is: the command says why it does not apply."""
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


def _settings(records: RunRecords) -> list[Markup]:
    content: list[Markup] = []
    base = _recipe_of_that_name(records.recipe)
    changes = {} if base is None else repeat_command.changed(base, records.recipe)
    if changes:
        rows = [[Cell(name, "code"), new, old] for name, (old, new) in changes.items()]
        caption = f"Settings changed from the recipe {records.recipe.name}"
        columns = ("setting", "here", "in the recipe")
        content.append(table(Table(caption, columns, [rows], num_text_columns=3)))
    elif base is not None:
        content.append(element("p", "All settings are the recipe's own."))
    groups = itertools.groupby(
        [s for s in settings(records.recipe) if s.name != "name" and s.typed != "(as below)"],
        key=lambda setting: setting.name.partition(".")[0],
    )
    by_part = [
        [[Cell(s.name, "code"), s.typed, Cell(s.help, "prose")] for s in group]
        for _, group in groups
    ]
    columns = ("setting", "value", "meaning")
    every = table(Table("All settings", columns, by_part, num_text_columns=3))
    content.append(element("details", element("summary", "Show all settings"), every))
    return content


def _type(records: RunRecords, verb: str) -> Markup:
    return code(_typed(records, verb, str(records.path)))
