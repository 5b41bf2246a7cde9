"""Scorecards, certificates, lines and models as they are printed on a terminal."""

from rich.text import Text

from abacist.certificates.record import Certificate
from abacist.formats.annotated import EVERYWHERE, NO_PLACE, AnnotatedTokens, Field
from abacist.intervals import percent
from abacist.models.parameter_count import Block, Component
from abacist.reports import score_plots
from abacist.reports.plots import View
from abacist.reports.run_report import exemption
from abacist.reports.tables import Cell, Table, exact, feature_table, number, score_table, shortened
from abacist.reports.terminal import Shown
from abacist.runs.outcome import Distribution
from abacist.scoring.records import Scorecard
from abacist.vocabulary import Vocabulary


def scorecard(card: Scorecard) -> Shown:
    """Show every section with its rows, grid and remarks, and what its failures have in common."""
    views: list[View] = []
    for section in card.sections.values():
        views.append(score_table(section.title, section.rows))
        views += score_plots.grids(section.details)
        views += [f"{remark}." for remark in score_plots.remarks(section)]
        if section.features:
            views.append(feature_table(section.features, section.errors))
    note = exemption(card.exempt_digits)
    return Shown([*views, note] if note else views)


def seeds(distribution: Distribution) -> Shown:
    """Show a row for each seed, and statistics over all of them."""
    rows: list[list[str]] = []
    for outcome in distribution.outcomes:
        stopped = outcome.exact_match.value is None
        rows.append(
            [
                str(outcome.seed),
                f"{outcome.steps:,}",
                f"{outcome.seconds:.1f}",
                number(outcome.steps_to_target, ","),
                "stopped" if stopped else exact(outcome.exact_match),
                "–"
                if stopped
                else Cell(f"{outcome.errors:,}", "good" if outcome.is_right else "bad"),
                "yes" if outcome.certified else "no",
            ]
        )
    columns = ("seed", "steps", "seconds", "to target", "exact match", "errors", "certified")
    values = distribution.to_json()
    sentences = [f"without an error: {distribution.without_error}"]
    sentences.append(f"certified: {distribution.certified}")
    if values["worst_exact_match"] is not None:
        sentences.append(
            f"exact match on problems as in training: median {percent(values['median_exact_match'])}, "
            f"worst {percent(values['worst_exact_match'])} "
            f"(n = {max(o.exact_match.n for o in distribution.outcomes):,} per seed)"
        )
    reached = sum(o.steps_to_target is not None for o in distribution.outcomes)
    sentences.append(
        "steps to the target on validation: median "
        f"{number(values['median_steps_to_target'], ',.0f')}, "
        f"reached by {reached} of {len(distribution.outcomes)}"
    )
    sentences += [f"seed {o.seed}: {o.failure}" for o in distribution.outcomes if o.failure]
    return Shown([Table("Seeds", columns, [rows], num_text_columns=0), *sentences])


def certificate(outcome: Certificate) -> Text:
    """Return what was proved, or why nothing was, in at most three lines."""
    if not outcome.certified:
        text = Text.assemble(("NOT CERTIFIED: ", "bold red"), outcome.reason)
        if outcome.counterexample is not None:
            problem = shortened(str(outcome.counterexample))
            text.append(f"\n  a problem with a wrong answer: {problem}")
        return text
    return Text.assemble(
        ("CERTIFIED: ", "bold green"),
        outcome.reason,
        f"\n  {outcome.neighbourhoods:,} neighbourhoods checked, {outcome.wrong} wrong, "
        f"smallest margin {outcome.smallest_margin:.2f} logits, {outcome.rounding}; "
        f"{outcome.seconds:.1f} s",
        "" if outcome.weights_sha256 is None else f"\n  weights {outcome.weights_sha256}",
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
    """Return one line as written, with its places, fields and targets below it in aligned columns.

    Lines that are wider than `columns` characters are broken into blocks.
    """
    count = int(lines.lengths[row])
    levels = {"place": lines.place, "row": lines.row, "step": lines.step}
    coordinates = {name: tensor for name, tensor in levels.items() if tensor is not None}
    rows: dict[str, list[str]] = {name: [] for name in ("token", *coordinates, "field", "target")}
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
        for name, tensor in coordinates.items():
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


def components(parts: list[Component], tokens: int, predicting: int) -> Shown:
    """Show the components of a model with their costs."""
    rows = [
        [
            part.name,
            part.shape,
            part.input,
            part.output,
            f"{part.count}",
            f"{part.parameters:,}",
            number(part.multiply_adds or None, ","),
        ]
        for part in parts
    ]
    caption = f"For lines of {tokens} tokens, {predicting} of them predicted (means of training)"
    columns = ("component", "shape", "in", "out", "times", "parameters", "multiply-adds")
    return Shown([Table(caption, columns, [rows], num_text_columns=2)])


def blocks(parts: list[Block]) -> Shown:
    """Show the input, every layer and the output of a model with their shapes and sizes."""
    rows = [
        [part.name, part.input, part.output, f"{part.parameters:,}", f"{part.bytes:,}"]
        for part in parts
    ]
    columns = ("block", "in", "out", "parameters", "bytes")
    return Shown([Table("Shapes for one line, and parameters of each block", columns, [rows])])
