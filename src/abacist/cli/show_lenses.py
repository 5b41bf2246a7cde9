"""How what lenses see looks on a terminal: compact tables, coloured where that is wanted."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from rich import box
from rich.columns import Columns
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from abacist.inspection.ablation import Ablation
from abacist.inspection.attention import Attention
from abacist.inspection.attribution import Attribution
from abacist.inspection.carry_probe import CarryProbe
from abacist.inspection.convergence import Recurrences
from abacist.inspection.embeddings import Embeddings, Evolution
from abacist.inspection.finding import Finding
from abacist.inspection.first_mistake import FirstMistake
from abacist.inspection.lens import LENSES
from abacist.inspection.logit_lens import LogitLens
from abacist.inspection.next_tokens import NextTokens
from abacist.inspection.patching import Patching
from abacist.inspection.place_attention import PlaceAttention
from abacist.intervals import Proportion, percent

_MOST_HEADS = 16
"""So many patterns are printed; --out draws and --json tells them all."""
_MOST_PARTS = 8
"""Columns of a table that fit a narrow terminal."""
_MOST_PLACES = 6
_FAINT = 0.005
"""Shares below it are left out of tables."""
_SHADES = " ░▒▓█"
_SEEN = 1 / 16
_STYLES = ("dim", "blue", "cyan", "green", "bold green")
"""Of a share below `_SEEN`, and of each quarter."""


def shown(name: str, finding: Finding) -> RenderableType:
    """A lens's finding under its summary."""
    title = Text.assemble((name, "bold"), f": {LENSES[name].summary}")
    return Group(title, _SHOWN[name](finding), "")


def _next_tokens(found: NextTokens) -> RenderableType:
    count = len(found.likeliest[0])
    table = _table("read off at", "right", *(f"{rank + 1}." for rank in range(count)))
    for column, right in zip(found.predicting, found.right, strict=True):
        cells = []
        for rank, token in enumerate(found.likeliest[column]):
            style = ("green" if token == right else "red") if rank == 0 else ""
            probability = float(found.probability.values[column, rank])
            cells.append(Text(f"{token} {percent(probability)}", style=style))
        table.add_row(_line_until(found.tokens, column), right, *cells)
    return table


def _attention(found: Attention) -> RenderableType:
    pattern = found.pattern.values
    patterns = [
        _pattern(found, f"head {depth}.{head}" if len(pattern) > 1 else f"head {head}", weights)
        for depth, heads in enumerate(pattern)
        for head, weights in enumerate(heads)
    ]
    parts: list[RenderableType] = [Columns(patterns[:_MOST_HEADS], padding=(0, 3))]
    if len(patterns) > _MOST_HEADS:
        parts.append(f"{len(patterns) - _MOST_HEADS} more heads: --json tells and --out draws all.")
    parts.append(
        "Rows: what is looked at before the token on the left is written; ░▒▓█ by quarters."
    )
    return Group(*parts)


def _pattern(found: Attention, name: str, weights_QK: Any) -> Text:
    """One head: a row for every predicting token, a column for every token of the line."""
    text = Text(f"{name:8} {''.join(_letter(token) for token in found.tokens)}\n", style="dim")
    for column, right in zip(found.predicting, found.right, strict=True):
        text.append(f"{right:>8} ")
        for share in weights_QK[column]:
            level = _level(float(share))
            text.append(_SHADES[level], style=_STYLES[level])
        text.append("\n")
    return text


def _place_attention(found: PlaceAttention) -> RenderableType:
    weight = found.weight.values
    pairs = [
        (field, difference)
        for field in range(len(found.fields))
        for difference in range(len(found.differences))
        if weight[:, :, field, difference].max() >= _FAINT
    ]
    names = [f"{found.fields[f]} {found.differences[d]}" for f, d in pairs]
    table = _table("head", *(name.replace(" ", "\n") for name in names))
    for depth, heads in enumerate(weight):
        for head, shares in enumerate(heads):
            name = f"{depth}.{head}" if len(weight) > 1 else str(head)
            table.add_row(name, *(_share(float(shares[f, d])) for f, d in pairs))
    return Group(
        table,
        f"Mean over {found.num_tokens:,} answer tokens of {found.num_problems:,} test problems; "
        "+1: the column after the token's own.",
    )


def _logit_lens(found: LogitLens) -> RenderableType:
    table = _table("after", *found.right)
    for stage, tokens, shares in zip(
        found.stages, found.likeliest, found.probability.values, strict=True
    ):
        cells = [
            Text(_letter(token), style=_STYLES[_level(float(share))])
            if token == right
            else Text(_letter(token), style="red")
            for token, right, share in zip(tokens, found.right, shares, strict=True)
        ]
        table.add_row(stage, *cells)
    return Group(table, "Columns: the right digits; cells: what would be written; red is wrong.")


def _recurrences(found: Recurrences) -> RenderableType:
    table = _table("recurrence", "distance to the last", "step", "probability of the right token")
    rows = zip(found.distance.values, found.step.values, found.probability.values, strict=True)
    for number, (distance, step, probability) in enumerate(rows, start=1):
        name = f"{number} (trained)" if number == found.trained else str(number)
        table.add_row(name, f"{distance:.4f}", f"{step:.4f}", percent(float(probability)))
    return table


def _attribution(found: Attribution) -> RenderableType:
    values = found.contribution.values
    # Of a deep model, the parts that move most.
    order = np.sort((-np.abs(values).mean(axis=1)).argsort()[:_MOST_PARTS])
    table = _table("right, not", *(found.components[part] for part in order), "lead")
    largest = float(np.abs(values).max()) or 1.0
    for number, (right, rival) in enumerate(zip(found.right, found.runner_up, strict=True)):
        table.add_row(
            f"{_letter(right)}, {_letter(rival)}",
            *(_signed(float(values[part, number]), largest) for part in order),
            _signed(float(found.lead.values[number]), largest),
        )
    left_out = len(values) - len(order)
    more = f" {left_out} smaller parts are left out; --json tells all." if left_out else ""
    return Group(table, f"Logits that each part adds to the right token's lead.{more}")


def _ablation(found: Ablation) -> RenderableType:
    table = _table("without", "set to 0", "95% interval", "set to its mean", "95% interval", "n")
    table.add_row(
        "nothing", *_proportion(found.whole), *_proportion(found.whole), f"{found.whole.n:,}"
    )
    for part in found.without:
        table.add_row(
            part.component, *_proportion(part.zero), *_proportion(part.mean), f"{part.zero.n:,}"
        )
    return Group(table, "Exact match on test problems, distributed as in training.")


def _patching(found: Patching) -> RenderableType:
    effect = found.effect.values
    columns = [
        column for column in range(len(found.tokens)) if np.abs(effect[:, column]).max() >= _FAINT
    ]
    table = _table(
        "patched", "all tokens", *(_line_until(found.tokens, column) for column in columns)
    )
    for name, row, everywhere in zip(
        found.components, effect, found.effect_everywhere.values, strict=True
    ):
        table.add_row(
            name, _signed(float(everywhere), 1.0), *(_signed(float(row[c]), 1.0) for c in columns)
        )
    return Group(
        f"{found.problem} with activations of {found.partner}; the digit at place {found.place} "
        f"is {found.right} and becomes {found.partner_right}.",
        table,
        "0: no effect; 1: as in the other problem. Columns: the token patched; others have none.",
    )


def _carry_probe(found: CarryProbe) -> RenderableType:
    places = sorted({probe.place for probe in found.probes if probe.place is not None})
    places = places[:_MOST_PLACES]
    table = _table("after", "all", "95% interval", "n", *(f"p{p}" for p in places))
    by_stage: dict[str, dict[int | None, Any]] = {}
    for probe in found.probes:
        by_stage.setdefault(probe.stage, {})[probe.place] = probe
    for stage, probes in by_stage.items():
        cells = [
            _share(probes[place].accuracy.value or 0.0) if place in probes else Text("–")
            for place in places
        ]
        together = probes[None].accuracy if None in probes else Proportion(0, 0)
        table.add_row(stage, *_proportion(together), f"{together.n:,}", *cells)
    majority = next((p.majority for p in found.probes if p.place is None), None)
    guess = "" if majority is None else f" Always saying the same is right in {percent(majority)}."
    return Group(
        table,
        "Is there a carry into the place about to be written (p2: the tens)? Probes of "
        f"{found.num_training_problems:,} problems, judged on {found.num_held_out_problems:,} "
        f"others.{guess}",
    )


def _embeddings(found: Embeddings) -> RenderableType:
    parts: list[RenderableType] = []
    for table in found.tables:
        points = _table(
            table.name, *(f"component {i + 1}" for i in range(table.points.values.shape[1]))
        )
        points.add_row("variance", *(percent(float(share)) for share in table.explained.values))
        points.add_section()
        for label, row in zip(table.labels, table.points.values, strict=True):
            points.add_row(label, *(f"{value:+.2f}" for value in row))
        parts += [points, _waves(table.name, table.spectrum.values.tolist())]
    return Group(*parts)


def _evolution(found: Evolution) -> RenderableType:
    parts: list[RenderableType] = []
    for table in found.tables:
        count = table.spectrum.values.shape[1]
        waves = _table(
            f"step ({table.name})",
            "spread",
            *(f"wave {frequency + 1}" for frequency in range(min(count, 10))),
        )
        for step, points, shares in zip(
            table.steps, table.points.values, table.spectrum.values, strict=True
        ):
            spread = float(np.sqrt((points**2).sum(axis=1).mean()))
            waves.add_row(f"{step:,}", f"{spread:.2f}", *(_share(float(s)) for s in shares[:10]))
        parts.append(waves)
    return Group(
        *parts, "Spread: how far rows are from their mean; waves: shares of their variance."
    )


def _waves(name: str, shares: Sequence[float]) -> Text:
    told = ", ".join(
        f"{k}: {percent(float(share))}" for k, share in enumerate(shares[:10], start=1)
    )
    return Text(f"Variance over the {name} that is a wave of k periods: {told}\n")


def _first_mistake(found: FirstMistake) -> RenderableType:
    place = "a token without a place" if found.place is None else f"place {found.place}"
    what = (
        Text.assemble(("first mistake", "bold red"), f" at {place}: ")
        if found.is_mistake
        else Text.assemble(("no mistake", "bold green"), f"; least certain at {place}: ")
    )
    verb = "instead of" if found.is_mistake else "rather than"
    first, second = (found.rival, found.right) if found.is_mistake else (found.right, found.rival)
    what.append(f"{first} {verb} {second} behind {found.before or 'nothing'}, ")
    what.append(f"margin {found.margin:+.2f} logits")
    if found.carry_chain is not None:
        columns = f"{found.carry_chain} column{'s' * (found.carry_chain > 1)}"
        what.append(
            f"; the carry into it began {columns} before"
            if found.carry_chain
            else "; no carry comes in"
        )
    largest = float(np.abs(found.contribution.values).max()) or 1.0
    table = _table("part", f"for {found.right}, against {found.rival}")
    for name, value in zip(found.components, found.contribution.values, strict=True):
        table.add_row(name, _signed(float(value), largest))
    return Group(what, table)


_SHOWN: dict[str, Callable[[Any], RenderableType]] = {
    "next-tokens": _next_tokens,
    "attention": _attention,
    "place-attention": _place_attention,
    "logit-lens": _logit_lens,
    "recurrences": _recurrences,
    "attribution": _attribution,
    "ablation": _ablation,
    "patching": _patching,
    "carry-probe": _carry_probe,
    "embeddings": _embeddings,
    "evolution": _evolution,
    "first-mistake": _first_mistake,
}


def _table(first: str, *others: str) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    table.add_column(first, no_wrap=True)
    for name in others:
        table.add_column(name, justify="right", no_wrap=True)
    return table


def _level(share: float) -> int:
    """0 … 4; only what is next to nothing is 0."""
    return 0 if share < _SEEN else min(4, 1 + int(4 * share))


def _share(share: float) -> Text:
    """A share in whole percent, left out where it is next to nothing."""
    if share < _FAINT:
        return Text("")
    return Text(f"{100 * share:.0f}%", style=_STYLES[_level(share)])


def _signed(value: float, largest: float) -> Text:
    """A number whose colour tells its sign and size."""
    strong = abs(value) > largest / 4
    style = ("bold " if strong else "") + ("green" if value > 0 else "red") if value else "dim"
    return Text(
        f"{value:+.1f}" if largest > 2 else f"{value:+.2f}",
        style=style if abs(value) > largest / 50 else "dim",
    )


def _proportion(match: Proportion) -> tuple[Text, str]:
    if match.value is None or match.interval is None:
        return Text("–"), "–"
    low, high = match.interval
    style = "green" if not match.errors else "red"
    return Text(percent(match.value), style=style), f"{percent(low)} – {percent(high)}"


def _letter(token: str) -> str:
    """One letter for a token: `<end>` is ⟩."""
    return {"<start>": "⟨", "<end>": "⟩"}.get(token, token[:1])


def _line_until(tokens: list[str], column: int) -> str:
    """A token with those before it, so that it can be found in the line."""
    before = "".join(map(_letter, tokens[max(0, column - 4) : column]))
    return ("…" if column > 4 else "") + before + f"[{_letter(tokens[column])}]"
