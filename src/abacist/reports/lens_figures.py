"""Pictures of what lenses saw, each drawn from its record (what `to_json` gives)."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from abacist.reports.figures import new_figure, save

Record = Mapping[str, Any]

_MOST_VALUES_WRITTEN = 400
"""Cells of a heat map beyond which their numbers would not be read."""
_TOKENS = {"<start>": "⟨", "<end>": "⟩"}
_CELL = 0.3
"""Inches of a cell."""
_MOST_PANELS = 64
_NUM_COLOURS = 10


@dataclass(frozen=True)
class _HeatMap:
    """One panel of numbers between names."""

    values: Sequence[Sequence[float]]
    rows: Sequence[str]
    columns: Sequence[str]
    title: str = ""
    xlabel: str = ""
    ylabel: str = ""
    texts: Sequence[Sequence[str]] | None = None
    """What stands in the cells; None leaves them empty."""
    low: float = 0.0
    high: float = 1.0
    colours: str = "viridis"
    cell_width: float = 1.0
    """In heights of a cell."""


def _next_tokens(record: Record, path: Path) -> None:
    ranks = range(len(record["likeliest"][0]))
    right = dict(zip(record["predicting"], record["right"], strict=True))
    columns = [
        f"{_letter(token)}\n→{_letter(right[column])}" if column in right else _letter(token)
        for column, token in enumerate(record["tokens"])
    ]
    panel = _HeatMap(
        [[shares[rank] for shares in record["probability"]["values"]] for rank in ranks],
        [f"{rank + 1}." for rank in ranks],
        columns,
        title="likeliest tokens behind every token; colour: probability",
        xlabel="token; →: what must follow where an answer is read off",
        texts=[[_letter(tokens[rank]) for tokens in record["likeliest"]] for rank in ranks],
    )
    _draw([panel], path, "probability")


def _attention(record: Record, path: Path) -> None:
    tokens = [_letter(token) for token in record["tokens"]]
    pattern = record["pattern"]["values"]
    panels = [
        _HeatMap(
            [weights[query] for query in record["predicting"]],
            [_letter(token) for token in record["right"]],
            tokens,
            title=_head(depth, head, len(pattern)),
            xlabel="is looked at",
            ylabel="before this is written",
            colours="Blues",
        )
        for depth, heads in enumerate(pattern)
        for head, weights in enumerate(heads)
    ]
    _draw(panels[:_MOST_PANELS], path, "attention")


def _place_attention(record: Record, path: Path) -> None:
    weight = record["weight"]["values"]
    heads = [
        (_head(depth, head, len(weight)), shares)
        for depth, layer in enumerate(weight)
        for head, shares in enumerate(layer)
    ]
    pairs = [
        (field, difference)
        for field in range(len(record["fields"]))
        for difference in range(len(record["differences"]))
        if max(shares[field][difference] for _, shares in heads) >= 0.005
    ]
    values = [[shares[f][d] for f, d in pairs] for _, shares in heads]
    panel = _HeatMap(
        values,
        [name for name, _ in heads],
        [f"{record['fields'][f]}\n{record['differences'][d]}" for f, d in pairs],
        title="mean attention by field and by place of the key minus place of the query\n"
        f"(n = {record['num_tokens']:,} answer tokens of {record['num_problems']:,} test problems)",
        texts=[[f"{100 * value:.0f}%" for value in row] for row in values],
        colours="Blues",
        cell_width=3.2,
    )
    _draw([panel], path, "attention")


def _logit_lens(record: Record, path: Path) -> None:
    panel = _HeatMap(
        record["probability"]["values"],
        record["stages"],
        [_letter(token) for token in record["right"]],
        title="what would be written; colour: the right token's probability",
        xlabel="right token",
        ylabel="after",
        texts=[[_letter(token) for token in row] for row in record["likeliest"]],
    )
    _draw([panel], path, "probability")


def _recurrences(record: Record, path: Path) -> None:
    figure = new_figure((8, 3.4))
    distance, step = record["distance"]["values"], record["step"]["values"]
    numbers = range(1, len(distance) + 1)
    left, right = figure.subplots(1, 2)
    # The last state is at distance 0 from itself, which has no logarithm.
    left.plot(list(numbers)[:-1], distance[:-1], marker="o", label="distance to the last state")
    left.plot(numbers, step, marker="s", label="change in this recurrence")
    left.set_yscale("log")
    left.set_ylabel("over the length of the last state")
    left.legend(frameon=False, fontsize=8)
    right.plot(numbers, record["probability"]["values"], marker="o")
    right.set_ylabel("probability of the right token, mean")
    right.set_ylim(-0.03, 1.03)
    for axes in (left, right):
        axes.axvline(record["trained"], color="grey", linestyle=":")
        axes.set_xlabel("recurrence (dotted: as many as trained)")
        axes.xaxis.get_major_locator().set_params(integer=True)
        axes.spines[["top", "right"]].set_visible(False)
    save(figure, path)


def _attribution(record: Record, path: Path) -> None:
    values = [*record["contribution"]["values"], record["lead"]["values"]]
    columns = [
        f"{_letter(right)}\n{_letter(rival)}"
        for right, rival in zip(record["right"], record["runner_up"], strict=True)
    ]
    panel = _diverging(
        values,
        [*record["components"], "together"],
        columns,
        title="what each part adds to the lead of the right token, in logits",
        xlabel="right token, and below it the runner-up",
    )
    _draw([panel], path, "logits")


def _ablation(record: Record, path: Path) -> None:
    without = record["without"]
    figure = new_figure((7, 1.4 + 0.34 * len(without)))
    axes = figure.add_subplot()
    for number, (kind, colour) in enumerate((("zero", "#4477aa"), ("mean", "#ccbb44"))):
        shares = [100 * part[kind]["value"] for part in without]
        intervals = [part[kind]["interval"] for part in without]
        axes.barh(
            [row + 0.4 * (number - 0.5) for row in range(len(without))],
            shares,
            height=0.38,
            color=colour,
            xerr=[
                [share - 100 * low for share, (low, _) in zip(shares, intervals, strict=True)],
                [100 * high - share for share, (_, high) in zip(shares, intervals, strict=True)],
            ],
            error_kw={"elinewidth": 1, "capsize": 2},
            label={"zero": "set to 0", "mean": "set to its mean"}[kind],
        )
    whole = record["whole"]
    axes.axvline(100 * whole["value"], color="grey", linestyle=":")
    axes.set_yticks(range(len(without)), [part["component"] for part in without])
    axes.invert_yaxis()
    axes.set_xlim(0, 103)
    axes.set_xlabel("exact match without it, % (bars: 95% Wilson interval; dotted: with all parts)")
    axes.set_title(f"n = {whole['n']:,} test problems", loc="left", fontsize=10)
    axes.spines[["top", "right"]].set_visible(False)
    # Above the bars, where it hides none.
    axes.legend(loc="lower right", bbox_to_anchor=(1, 1), ncols=2, frameon=False)
    save(figure, path)


def _patching(record: Record, path: Path) -> None:
    # Where the tokens differ, both are told.
    columns = [
        _letter(own) if own == other else f"{_letter(own)}\n{_letter(other)}"
        for own, other in zip(record["tokens"], record["partner_tokens"], strict=True)
    ]
    values = [
        [everywhere, *row]
        for everywhere, row in zip(
            record["effect_everywhere"]["values"], record["effect"]["values"], strict=True
        )
    ]
    panel = _diverging(
        values,
        record["components"],
        ["all", *columns],
        title=f"{record['problem']} with activations of {record['partner']}: effect on the digit of "
        f"place {record['place']}, which is {record['right']} and becomes {record['partner_right']}",
        xlabel="token that is patched (two where the problems differ)",
        largest=1.0,
        written=False,
    )
    _draw([panel], path, "effect")


def _carry_probe(record: Record, path: Path) -> None:
    stages = list(dict.fromkeys(probe["stage"] for probe in record["probes"]))
    places = list(dict.fromkeys(probe["place"] for probe in record["probes"]))
    found = {(p["stage"], p["place"]): p["accuracy"]["value"] for p in record["probes"]}
    values = [[found.get((stage, place), math.nan) for place in places] for stage in stages]
    panel = _HeatMap(
        values,
        stages,
        ["all" if place is None else str(place) for place in places],
        title="is there a carry into the place about to be written? accuracy of a linear probe\n"
        f"(n = {record['num_training_problems']:,} problems to fit, "
        f"{record['num_held_out_problems']:,} others to judge)",
        xlabel="place",
        ylabel="after",
        texts=[["" if math.isnan(v) else f"{100 * v:.0f}" for v in row] for row in values],
        low=0.5,
        cell_width=1.6,
    )
    _draw([panel], path, "accuracy")


def _embeddings(record: Record, path: Path) -> None:
    tables = record["tables"]
    figure = new_figure((12, 3.9 * len(tables)))
    for number, table in enumerate(tables):
        points = table["points"]["values"]
        first, second, third = (list(axis) for axis in zip(*points, strict=True))
        shares = [f"{100 * share:.0f}%" for share in table["explained"]["values"]]
        colours = _colours(len(points))
        flat = figure.add_subplot(len(tables), 3, 3 * number + 1)
        deep = figure.add_subplot(len(tables), 3, 3 * number + 2, projection="3d")
        flat.plot(first, second, color="#cccccc", linewidth=0.8)
        deep.plot(first, second, third, color="#cccccc", linewidth=0.8)
        deep.scatter(first, second, third, c=colours, s=14, depthshade=False)
        for (x, y, z), label, colour in zip(points, table["labels"], colours, strict=True):
            flat.text(x, y, label, color=colour, ha="center", va="center", weight="bold")
            deep.text(x, y, z, f" {label}", color=colour, fontsize=8)
        flat.margins(0.12)
        flat.set_title(f"{table['name']}", loc="left", fontsize=10)
        flat.set_xlabel(f"component 1 ({shares[0]} of the variance)")
        flat.set_ylabel(f"component 2 ({shares[1]})")
        flat.spines[["top", "right"]].set_visible(False)
        # A label of the third axis would lie on the next panel.
        deep.set_title(f"upwards: component 3 ({shares[2]})", fontsize=10)
        deep.tick_params(labelsize=6)
        waves = figure.add_subplot(len(tables), 3, 3 * number + 3)
        spectrum = table["spectrum"]["values"]
        waves.bar(range(1, len(spectrum) + 1), [100 * share for share in spectrum], color="#4477aa")
        waves.set_xlabel(f"periods over {len(points)} {table['name']}")
        waves.set_ylabel("% of the variance")
        waves.xaxis.get_major_locator().set_params(integer=True)
        waves.spines[["top", "right"]].set_visible(False)
    save(figure, path)


def _evolution(record: Record, path: Path) -> None:
    tables = record["tables"]
    figure = new_figure((9.5, 4 * len(tables)))
    for number, table in enumerate(tables):
        points, steps = table["points"]["values"], table["steps"]
        paths = figure.add_subplot(len(tables), 2, 2 * number + 1)
        colours = _colours(len(table["labels"]))
        for row, (label, colour) in enumerate(zip(table["labels"], colours, strict=True)):
            x, y = ([copy[row][axis] for copy in points] for axis in (0, 1))
            paths.plot(x, y, color=colour, linewidth=1, alpha=0.7)
            paths.plot(x[:1], y[:1], color=colour, marker="o", markersize=3)
            paths.text(x[-1], y[-1], label, color=colour, weight="bold", ha="center", va="center")
        paths.margins(0.12)
        paths.set_title(
            f"{table['name']}: from step {steps[0]:,} (dots) to {steps[-1]:,}",
            loc="left",
            fontsize=10,
        )
        paths.set_xlabel("component 1 of the last step")
        paths.set_ylabel("component 2")
        waves = figure.add_subplot(len(tables), 2, 2 * number + 2)
        spectrum = table["spectrum"]["values"]
        for frequency in range(min(len(spectrum[0]), 5)):
            waves.plot(
                steps,
                [100 * shares[frequency] for shares in spectrum],
                label=f"{frequency + 1} period{'s' * (frequency > 0)}",
            )
        waves.set_ylim(bottom=0)
        waves.set_xlabel("training step")
        waves.set_ylabel("% of the variance that is a wave")
        waves.legend(frameon=False, fontsize=8)
        for axes in (paths, waves):
            axes.spines[["top", "right"]].set_visible(False)
    save(figure, path)


def _first_mistake(record: Record, path: Path) -> None:
    values = record["contribution"]["values"]
    figure = new_figure((7, 1.3 + 0.28 * len(values)))
    axes = figure.add_subplot()
    axes.barh(
        record["components"],
        values,
        color=["#228833" if value > 0 else "#cc6677" for value in values],
    )
    axes.invert_yaxis()
    axes.axvline(0, color="black", linewidth=0.8)
    what = "first mistake" if record["is_mistake"] else "no mistake; the least certain token"
    place = "" if record["place"] is None else f" at place {record['place']}"
    axes.set_title(f"{what}{place}: margin {record['margin']:+.2f}", loc="left", fontsize=10)
    axes.set_xlabel(
        f"logits for {_letter(record['right'])}, which is right, against {_letter(record['rival'])}"
    )
    axes.spines[["top", "right"]].set_visible(False)
    save(figure, path)


FIGURES: dict[str, Callable[[Record, Path], None]] = {
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
"""How the record of each lens is drawn."""


def _diverging(
    values: Sequence[Sequence[float]],
    rows: Sequence[str],
    columns: Sequence[str],
    *,
    title: str,
    xlabel: str,
    largest: float | None = None,
    written: bool = True,
) -> _HeatMap:
    """Numbers around 0: blue is for, red against."""
    largest = largest or max(abs(value) for row in values for value in row) or 1.0
    return _HeatMap(
        values,
        rows,
        columns,
        title=title,
        xlabel=xlabel,
        texts=[[f"{value:.1f}" for value in row] for row in values] if written else None,
        low=-largest,
        high=largest,
        colours="RdBu",
        cell_width=1.5 if written else 1.0,
    )


def _draw(panels: Sequence[_HeatMap], path: Path, label: str) -> None:
    """Heat maps of one scale beside and below each other, with a bar that tells the colours."""
    import numpy as np
    from matplotlib import colormaps

    widest = max(len(panel.columns) * panel.cell_width for panel in panels) * _CELL + 1.6
    tallest = max(len(panel.rows) for panel in panels) * _CELL + 1.3
    across = min(len(panels), max(1, round(14 / widest)))
    down = math.ceil(len(panels) / across)
    figure = new_figure((max(7.0, across * widest + 0.8), down * tallest))
    grid = figure.subplots(down, across, squeeze=False)
    for axes in grid.flat[len(panels) :]:
        axes.set_visible(False)
    for axes, panel in zip(grid.flat, panels, strict=False):
        values = np.array(panel.values, dtype=float)
        image = axes.imshow(
            values, cmap=panel.colours, vmin=panel.low, vmax=panel.high, aspect="auto"
        )
        axes.set_xticks(range(len(panel.columns)), panel.columns, fontsize=8)
        axes.set_yticks(range(len(panel.rows)), panel.rows, fontsize=8)
        axes.tick_params(length=0)
        axes.set_title(panel.title, loc="left", fontsize=9)
        axes.set_xlabel(panel.xlabel, fontsize=8)
        axes.set_ylabel(panel.ylabel, fontsize=8)
        axes.spines[:].set_visible(False)
        if panel.texts is None or values.size > _MOST_VALUES_WRITTEN:
            continue
        shades = colormaps[panel.colours]((values - panel.low) / (panel.high - panel.low))
        for row, texts in enumerate(panel.texts):
            for column, text in enumerate(texts):
                is_dark = shades[row, column, :3] @ (0.299, 0.587, 0.114) < 0.5
                colour = "white" if is_dark else "black"
                axes.text(column, row, text, ha="center", va="center", fontsize=8, color=colour)
    figure.colorbar(image, ax=grid.ravel().tolist(), label=label, fraction=0.03, pad=0.01)
    save(figure, path)


def _colours(count: int) -> list[Any]:
    """One for each of ten digits; a range from dark to light for more."""
    from matplotlib import colormaps

    if count <= _NUM_COLOURS:
        return [colormaps["tab10"](number) for number in range(count)]
    return [colormaps["viridis"](number / count) for number in range(count)]


def _head(depth: int, head: int, num_layers: int) -> str:
    return f"head {depth}.{head}" if num_layers > 1 else f"head {head}"


def _letter(token: str) -> str:
    return _TOKENS.get(token, token)
