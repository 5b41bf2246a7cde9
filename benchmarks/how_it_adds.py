"""The measurements, tables and pictures of docs/how-it-adds.md.

    python benchmarks/how_it_adds.py
    python benchmarks/how_it_adds.py --document      only tables and pictures, from the records

The first command trains two seeds of the default recipe, and three with learned absolute places, on
one thread each. It takes some minutes and writes `results/how-it-adds*.json` and `docs/how-it-adds*.png`.
Means are over test problems. Patching uses one partner per problem, which differs in one digit and
one carry. The neighbourhood of one digit is also placed into sums of other lengths, at other places.
"""

import argparse
import copy
import json
import random
import re
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import reduce
from pathlib import Path
from typing import Any

import torch

import abacist
from abacist.certificates.receptive_fields import receptive_field, visibility_in
from abacist.errors import ProblemError
from abacist.inspection.ablation import ablation, ablation_hooks, exact_match_with
from abacist.inspection.cache import Hook, name_of, run_with_cache
from abacist.inspection.carry_probe import carry_probe
from abacist.inspection.inspected_lines import InspectedLines, batches, write_lines
from abacist.inspection.inspected_problem import InspectedProblem
from abacist.inspection.patching import patching
from abacist.inspection.place_attention import place_attention
from abacist.intervals import Proportion, percent
from abacist.reports import lens_views, matplotlib_figures
from abacist.reports.matplotlib_figures import new_figure, save
from abacist.runs.run import Run

ROOT = Path(__file__).parents[1]
DOCUMENT = ROOT / "docs" / "how-it-adds.md"
RECORD = ROOT / "results" / "how-it-adds.json"
OTHER_SEED = ROOT / "results" / "how-it-adds-seed-1.json"
LEARNED_RECORD = ROOT / "results" / "how-it-adds-learned.json"

SUM = (58_274_691, 4_360_728)
"""The sum whose receptive field is drawn. Its fourth digit receives a carry."""
PLACE = 4
LEARNED: dict[str, object] = {
    "model.positions": "abacus",
    "model.positions.0.offset": "none",
    "model.positions.0.max_offset": 0,
    "training.num_steps": 4_000,
}
"""Settings for one learned vector per place, added to the input, instead of differences of places.

Such a model learns more slowly: after the recipe's 1,500 steps two thirds of sums of 10 digits are right.
"""
LEARNED_SEEDS = (0, 1, 2)
TRAINED, BEYOND = 10, 12
"""Number of digits of the longest training operands, and of the sums that are measured."""


def errors(inspected: InspectedProblem) -> list[dict[str, Any]]:
    """Count the wrong digits with each component set to its mean, and those that are off by one."""
    trained_model, problems = inspected.trained_model, inspected.sample
    rows = []
    for switch in ablation_hooks(trained_model, problems):
        digits = wrong = off_by_one = 0
        for _, lines in batches(trained_model, problems):
            logits, _ = run_with_cache(
                trained_model.model, lines.tokens.ids, lines.coordinates, switch.mean(lines)
            )
            is_digit = lines.predicts & (lines.labels < 10)
            written, right = logits.cpu().argmax(dim=-1)[is_digit], lines.labels[is_digit]
            difference = (written - right) % 10
            digits += len(right)
            wrong += int((written != right).sum())
            off_by_one += int(((written < 10) & ((difference == 1) | (difference == 9))).sum())
        rows.append(
            {
                "component": switch.component,
                "wrong": Proportion(wrong, digits).to_json(),
                "off by one": Proportion(off_by_one, wrong).to_json(),
            }
        )
    return rows


def effects(inspected: InspectedProblem, num_problems: int) -> list[dict[str, Any]]:
    """Measure the mean effect of patching single activations on the digit that receives the carry."""
    effects_of: dict[str, list[float]] = {}
    for row in range(len(inspected.sample)):
        try:
            patched = patching(replace(inspected, problem=inspected.sample[row : row + 1]))
        except ProblemError:
            # Changing a single digit changes no carry, or several, as in 99+1.
            continue
        effect = dict(zip(patched.components, patched.effect.values.tolist(), strict=True))
        operand, written = (
            token
            for token, pair in enumerate(zip(patched.tokens, patched.partner_tokens, strict=True))
            if pair[0] != pair[1] and token <= patched.predicting
        )
        effects_of.setdefault("the operand digit that differs", []).append(
            effect["embedding"][operand]
        )
        effects_of.setdefault("the digit written below it", []).append(effect["embedding"][written])
        for name in patched.components[1:-1]:
            effects_of.setdefault(name, []).append(effect[name][patched.predicting])
        if len(effects_of["MLP"]) == num_problems:
            break
    return [
        {
            "patched": name,
            "n": len(values),
            "mean": float(torch.tensor(values).mean()),
            "more than half": Proportion(sum(v > 0.5 for v in values), len(values)).to_json(),
        }
        for name, values in effects_of.items()
    ]


def located_field(run: Run, a: int, b: int, place: int) -> dict[str, Any]:
    """Find the tokens that can influence the digit at a place, from the model's attention masks."""
    inspected = run.look(f"{a}+{b}")
    lines = inspected.lines
    query = int((lines.predicts & (lines.predicted_place == place))[0].nonzero())
    return {
        "a": str(a),
        "b": str(b),
        "place": place,
        "tokens": inspected.tokens,
        "query": query,
        "reach": receptive_field(visibility_in(run.model, lines.tokens), query),
    }


def same_neighbourhood(chance: random.Random, place: int, num_digits: int) -> tuple[int, int]:
    """Return another sum with the digits of `SUM` at `PLACE` and one place below, moved to `place`.

    All other digits are random, except that the digit of the answer one place below is the same, too.
    """
    unit = 10 ** (PLACE - 2)
    middles = [number // unit % 100 for number in SUM]
    carried = sum(number % unit for number in SUM) >= unit
    below = 10 ** (place - 2)
    while True:
        lows = [chance.randrange(below) for _ in SUM]
        if (sum(lows) >= below) == carried:
            break
    top = 10 ** (num_digits - place)
    highs = [chance.randrange(top // 10, top) for _ in SUM]
    a, b = (
        high * 100 * below + middle * below + low
        for high, middle, low in zip(highs, middles, lows, strict=True)
    )
    return a, b


def elsewhere(run: Run, num_sums: int) -> dict[str, Any]:
    """Measure, in float64, how far the logits of one neighbourhood differ between many sums."""
    chance = random.Random(0)
    sums = []
    for _ in range(num_sums):
        place = chance.randrange(3, 90)
        sums.append((place, same_neighbourhood(chance, place, chance.randrange(place + 1, 101))))
    trained_model = run.look(run.task.example).trained_model
    exact = replace(trained_model, model=copy.deepcopy(run.model).double())

    def logits_of(expressions: list[str], places: list[int]) -> torch.Tensor:
        all_logits = torch.zeros(
            len(places), len(trained_model.format.vocabulary), dtype=torch.float64
        )
        for rows, lines in batches(exact, trained_model.task.parse(expressions)):
            logits, _ = run_with_cache(
                exact.model, lines.tokens.ids, lines.coordinates, keep=lambda name: False
            )
            place = torch.tensor(places)[rows].unsqueeze(1)
            all_logits[rows] = logits[lines.predicts & (lines.predicted_place == place)]
        return all_logits

    own = logits_of([f"{SUM[0]}+{SUM[1]}"], [PLACE])
    others = logits_of([f"{a}+{b}" for _, (a, b) in sums], [place for place, _ in sums])
    return {
        "n": num_sums,
        "places": [min(place for place, _ in sums), max(place for place, _ in sums)],
        "largest difference": float((others - own).abs().max()),
    }


def measure(run: Run) -> dict[str, Any]:
    """Make all measurements of one seed of the recipe."""
    inspected = run.look("458+67", num_problems=1_000)
    lenses = {
        "place-attention": place_attention(inspected).to_json(),
        "ablation": ablation(inspected).to_json(),
        "carry-probe": carry_probe(inspected).to_json(),
    }
    far = same_neighbourhood(random.Random(17), 17, 24)
    return {
        "recipe": run.recipe.name,
        "seed": run.seed,
        **lenses,
        "errors": errors(inspected),
        "patching": effects(inspected, 200),
        "reach": [located_field(run, *SUM, PLACE), located_field(run, *far, 17)],
        "elsewhere": elsewhere(run, 1_000),
        "certificate": run.prove().to_json(),
        "columns": columns(run, 500),
    }


# Learned absolute places --------------------------------------------------------------------


def long_sums(count: int, num_digits: int, chance: random.Random) -> list[tuple[int, int]]:
    """Draw sums of two numbers of `num_digits` digits that do not carry at two places.

    Nothing is carried from the highest column, nor from the two lowest ones.
    """
    low, high = 10 ** (num_digits - 1), 10**num_digits
    sums: list[tuple[int, int]] = []
    while len(sums) < count:
        a, b = (chance.randrange(low, high) for _ in range(2))
        if a + b < high and a % 100 + b % 100 < 100:
            sums.append((a, b))
    return sums


def columns(run: Run, count: int) -> dict[str, Any]:
    """Measure mean attention by head and by place of the written digit, in sums longer than in training.

    `next` is attention to the two digits to be added, `own` attention to the column below and to
    the digit of the answer in it.
    """
    trained_model = run.look(run.task.example).trained_model
    lines = write_sums(run, long_sums(count, BEYOND, random.Random(0)))
    _, cache = run_with_cache(trained_model.model, lines.tokens.ids, lines.coordinates)
    pattern, places = cache["pattern", 0].double(), range(2, BEYOND + 1)
    attention: dict[str, list[list[float]]] = {"next": [], "own": []}
    for head in range(pattern.shape[1]):
        shares: dict[str, list[float]] = {"next": [], "own": []}
        for place in places:
            queries = lines.predicts & (lines.predicted_place == place)
            rows = pattern[:, head][queries]
            for name, column in (("next", place), ("own", place - 1)):
                shares[name].append(float((rows * (lines.tokens.place == column)).sum() / count))
        for name, line in shares.items():
            attention[name].append(line)
    return {"n": count, "places": list(places), **attention}


def write_sums(run: Run, sums: list[tuple[int, int]]) -> InspectedLines:
    trained_model = run.look(run.task.example).trained_model
    return write_lines(trained_model, trained_model.task.parse([f"{a}+{b}" for a, b in sums]))


def transplants(run: Run, count: int) -> list[dict[str, Any]]:
    """Count right digits beyond the trained places with activations from two columns lower patched in.

    Without its two lowest columns, which carry nothing, a sum has the same last digits at places that
    were trained. Activations of that shorter sum are patched into the longer one, at the tokens that
    predict those digits: the attention pattern of all heads, the output of one head or of all, or the
    token's own embedding as the MLP receives it.
    """
    shift, sums = BEYOND - TRAINED, long_sums(count, BEYOND, random.Random(1))
    own = write_sums(run, sums)
    lower = write_sums(run, [(a // 10**shift, b // 10**shift) for a, b in sums])
    _, before = run_with_cache(run.model, own.tokens.ids, own.coordinates)
    _, there = run_with_cache(run.model, lower.tokens.ids, lower.coordinates)
    places = range(TRAINED + 1, BEYOND + 1)
    targets = [_query(own, place) for place in places]
    sources = [_query(lower, place - shift) for place in places]
    keys = _keys(own, lower, shift)

    def look(pattern: torch.Tensor, head: int) -> torch.Tensor:
        changed = pattern.clone()
        for query, source in zip(targets, sources, strict=True):
            changed[:, head, query] = 0.0
            changed[:, head, query, keys] = there["pattern", 0][:, head, source]
        return changed

    def bring(heads: list[int]) -> Hook:
        def hook(z: torch.Tensor) -> torch.Tensor:
            changed = z.clone()
            for query, source in zip(targets, sources, strict=True):
                changed[:, query, heads] = there["z", 0][:, source][:, heads]
            return changed

        return hook

    def embed(middle: torch.Tensor) -> torch.Tensor:
        changed = middle.clone()
        changed[:, targets] += (
            there["resid_pre", 0][:, sources] - before["resid_pre", 0][:, targets]
        )
        return changed

    heads = list(range(run.model.config.num_heads))
    z, pattern = name_of("z", 0), name_of("pattern", 0)
    cases: dict[str, Mapping[str, Hook]] = {
        "nothing": {},
        **{f"what head {h} brings": {z: bring([h])} for h in heads},
        "where all heads look": {pattern: lambda x: reduce(look, heads, x)},
        "what all heads bring": {z: bring(heads)},
        "the token's own embedding": {name_of("resid_mid", 0): embed},
    }
    labels, rows = own.labels[:, targets], []
    for name, hooks in cases.items():
        logits, _ = run_with_cache(run.model, own.tokens.ids, own.coordinates, hooks)
        right = int((logits[:, targets].argmax(dim=-1) == labels).sum())
        rows.append({"patched": name, "right": Proportion(right, labels.numel()).to_json()})
    return rows


def _keys(own: InspectedLines, lower: InspectedLines, shift: int) -> list[int]:
    """Where in the longer lines the tokens of the shorter ones stand."""

    def named(lines: InspectedLines, lift: int) -> list[tuple[int, int]]:
        fields, places = lines.tokens.field[0].tolist(), lines.tokens.place[0].tolist()
        return [(f, p + lift if p > 0 else p) for f, p in zip(fields, places, strict=True)]

    there = named(own, 0)
    return [there.index(name) for name in named(lower, shift)]


def _query(lines: InspectedLines, place: int) -> int:
    """The token from which the digit of a place is read off, the same in all lines."""
    columns = (lines.predicts & (lines.predicted_place == place)).nonzero()[:, 1]
    (column,) = set(columns.tolist())
    return int(column)


def by_length(run: Run, count: int) -> list[dict[str, Any]]:
    """Measure exact match on sums of two equally long numbers, up to lengths beyond training."""
    trained_model, rows = run.look(run.task.example).trained_model, []
    for num_digits in range(TRAINED - 1, BEYOND + 1):
        chance, low = random.Random(num_digits), 10 ** (num_digits - 1)
        pairs = [[chance.randrange(low, 10 * low) for _ in range(2)] for _ in range(count)]
        problems = trained_model.task.parse([f"{a}+{b}" for a, b in pairs])
        right = exact_match_with(trained_model, problems, lambda lines: {})
        rows.append({"digits": num_digits, "exact match": right.to_json()})
    return rows


def measure_learned(run: Run) -> dict[str, Any]:
    return {
        "seed": run.seed,
        "parameters": run.model.num_parameters,
        "lengths": by_length(run, 1_000),
        "columns": columns(run, 500),
        "transplants": transplants(run, 500),
    }


def tables(record: dict[str, Any], learned: Sequence[dict[str, Any]]) -> dict[str, str]:
    """Return the tables of the document by name, in Markdown."""
    attention = record["place-attention"]
    heads = attention["weight"]["values"][0]
    rows = ["| head | start | `=` and answer, own column | operands, own column | operands, next column |", "|---|---|---|---|---|"]  # fmt: skip  # noqa: E501
    same, following = (attention["differences"].index(d) for d in ("0", "+1"))
    fields = attention["fields"]
    for head, shares in enumerate(heads):
        start = sum(shares[fields.index("start")])
        written = sum(shares[fields.index(name)][same] for name in ("equals", "answer"))
        operands = [shares[fields.index(f"operand {i}")] for i in (1, 2)]
        cells = (
            start,
            written,
            sum(o[same] for o in operands),
            sum(o[following] for o in operands),
        )
        rows.append(f"| {head} | " + " | ".join(f"{100 * cell:.0f}%" for cell in cells) + " |")
    ablated = ["| without | exact match, set to 0 | exact match, set to its mean | wrong digits | of these off by one |", "|---|---|---|---|---|"]  # fmt: skip  # noqa: E501
    for part, row in zip(record["ablation"]["without"], record["errors"], strict=True):
        cells = (part["zero"], part["mean"], row["wrong"], row["off by one"])
        ablated.append(
            f"| {part['component']} | " + " | ".join(_percentage(cell) for cell in cells) + " |"
        )
    patched = ["| patched | mean effect | more than half the way |", "|---|---|---|"]
    patched += [
        f"| {row['patched']} | {row['mean']:.2f} | {_percentage(row['more than half'])} |"
        for row in record["patching"]
    ]
    probes = ["| after | carry read correctly | always the same answer |", "|---|---|---|"]
    probes += [
        f"| {row['stage']} | {_percentage(row['accuracy'])} | {percent(row['majority'])} |"
        for row in record["carry-probe"]["probes"]
        if row["place"] is None
    ]
    digits = [row["digits"] for row in learned[0]["lengths"]]
    lengths = ["| seed | " + " | ".join(f"{d} digits" for d in digits) + " |", "|---" * (len(digits) + 1) + "|"]  # fmt: skip  # noqa: E501
    lengths += [
        f"| {seed['seed']} | "
        + " | ".join(_percentage(row["exact match"]) for row in seed["lengths"])
        + " |"
        for seed in learned
    ]
    seeds = " | ".join(f"right, seed {seed['seed']}" for seed in learned)
    moved = [f"| taken from two columns lower | {seeds} |", "|---" * (len(learned) + 1) + "|"]
    moved += [
        f"| {cells[0]['patched']} | "
        + " | ".join(_percentage(cell["right"]) for cell in cells)
        + " |"
        for cells in zip(*(seed["transplants"] for seed in learned), strict=True)
    ]
    named = {"attention": rows, "ablation": ablated, "patching": patched, "probes": probes}
    named |= {"lengths": lengths, "transplants": moved}
    return {name: "\n".join(lines) for name, lines in named.items()}


def _percentage(proportion: dict[str, Any]) -> str:
    if proportion["value"] is None:
        return "–"
    low, high = proportion["interval"]
    return f"{percent(proportion['value'])} ({percent(low)} – {percent(high)}, n = {proportion['n']:,})"


def with_tables(document: str) -> str:
    """Return the document with every marked table generated from the committed records."""
    learned = json.loads(LEARNED_RECORD.read_text())["seeds"]
    table_of = tables(json.loads(RECORD.read_text()), learned)
    return re.sub(
        r"<!-- table (\w+) -->\n.*?<!-- end -->",
        lambda match: f"<!-- table {match[1]} -->\n{table_of[match[1]]}\n<!-- end -->",
        document,
        flags=re.DOTALL,
    )


# Pictures -----------------------------------------------------------------------------------


def draw_receptive_fields(sums: Sequence[dict[str, Any]], path: Path) -> None:
    """Draw the receptive field of one digit in several sums, on paper and as the model reads them."""
    figure = new_figure((11, 2.75 * len(sums)))
    for axes, drawn_sum in zip(figure.subplots(len(sums), 1), sums, strict=True):
        _draw_sum(axes, drawn_sum)
    save(figure, path)


def _draw_sum(axes: Any, drawn_sum: dict[str, Any]) -> None:
    tokens, seen, place = drawn_sum["tokens"], set(drawn_sum["reach"]), drawn_sum["place"]
    first, second = len(drawn_sum["a"]), len(drawn_sum["b"])
    starts = {0: 1, 1: first + 2, 2: first + second + 3}
    width = max(first, second) + 1
    for row, (begin, count) in enumerate(
        [(starts[0], first), (starts[1], second), (starts[2], len(tokens) - starts[2])]
    ):
        for number in range(count):
            token = begin + number
            if token > drawn_sum["query"]:
                if token == drawn_sum["query"] + 1:
                    axes.text(width - number, -row, "?", color="#b23a55", weight="bold", size=12, ha="center", va="center")  # fmt: skip  # noqa: E501
                continue
            _digit(axes, width - number, -row, tokens[token], token in seen)
    axes.text(-0.2, -1, "+", ha="center", va="center", color="#999999")
    axes.plot([0.4, width + 0.6], [-1.5, -1.5], color="#555555", linewidth=0.9)
    # The line as the model reads it, up to the token that predicts the digit.
    for token in range(drawn_sum["query"] + 1):
        symbol = "⟨" if tokens[token] == "<start>" else tokens[token]
        _digit(axes, token * 0.86 - 0.2, -4.0, symbol, token in seen)
    end = (drawn_sum["query"] + 1) * 0.86 - 0.2
    axes.text(end, -4.0, "?", color="#b23a55", weight="bold", size=12, ha="center", va="center")
    axes.text(-0.2, -3.2, "as the model reads it:", size=9, color="#555555", va="center")
    axes.set_title(
        f"place {place} of {drawn_sum['a']} + {drawn_sum['b']}: {len(seen)} of {drawn_sum['query'] + 1} tokens decide",
        loc="left",
        fontsize=10,
    )
    axes.set_xlim(-0.8, 51)
    axes.set_ylim(-4.6, 0.6)
    axes.set_axis_off()


def _digit(axes: Any, x: float, y: float, text: str, is_seen: bool) -> None:
    """Draw a digit, in a box if it belongs to the receptive field."""
    box = {"boxstyle": "square,pad=0.25", "facecolor": "#cfe0f5", "edgecolor": "#2f5f9e"}
    axes.text(
        x, y, text, ha="center", va="center", size=11,
        color="#1b2430" if is_seen else "#999999",
        bbox=box if is_seen else None,
    )  # fmt: skip


def draw_columns(models: Mapping[str, dict[str, Any]], path: Path) -> None:
    """Draw the attention of every head by place of the written digit, one row of panels per model."""
    figure = new_figure((12, 2.6 * len(models)))
    panels = figure.subplots(len(models), 2, squeeze=False)
    labels = {
        "next": "the two digits to be added",
        "own": "the column below, and what is written there",
    }
    for line, (name, attention) in zip(panels, models.items(), strict=True):
        for axes, (kind, label) in zip(line, labels.items(), strict=True):
            image = axes.imshow(attention[kind], cmap="Blues", vmin=0, vmax=1, aspect="auto")
            for head, shares in enumerate(attention[kind]):
                for number, share in enumerate(shares):
                    colour = "white" if share > 0.65 else "black"
                    axes.text(number, head, f"{100 * share:.0f}", ha="center", va="center", color=colour, fontsize=8)  # fmt: skip  # noqa: E501
            axes.axvline(attention["places"].index(TRAINED) + 0.5, color="#b23a55", linewidth=1.5)
            axes.set_xticks(range(len(attention["places"])), attention["places"])
            axes.set_yticks(
                range(len(attention[kind])), [f"head {h}" for h in range(len(attention[kind]))]
            )
            axes.tick_params(length=0)
            axes.spines[:].set_visible(False)
            axes.set_title(f"{name}: on {label}", loc="left", fontsize=9)
    for axes in panels[-1]:
        axes.set_xlabel(
            f"place that is written (red: end of the training lengths; n = {attention['n']:,} sums each)",
            fontsize=9,
        )
    figure.colorbar(image, ax=panels.ravel().tolist(), label="attention", fraction=0.03, pad=0.01)
    save(figure, path)


def draw(folder: Path) -> None:
    """Draw all pictures from the committed records."""
    record = json.loads(RECORD.read_text())
    learned = json.loads(LEARNED_RECORD.read_text())["seeds"]
    for name in ("place-attention", "ablation", "carry-probe"):
        plots = lens_views.plots_of(lens_views.views(name, record[name]))
        matplotlib_figures.draw(plots, folder / f"how-it-adds-{name}.png")
    draw_receptive_fields(record["reach"], folder / "how-it-adds-reach.png")
    models = {
        "differences of places": record["columns"],
        "absolute places": learned[0]["columns"],
    }
    draw_columns(models, folder / "how-it-adds-learned.png")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--document", action="store_true", help="only generate tables and pictures")
    if not parser.parse_args().document:
        # One thread gives the same weights every time.
        torch.set_num_threads(1)
        with tempfile.TemporaryDirectory() as folder:
            make_records(Path(folder))
    draw(DOCUMENT.parent)
    DOCUMENT.write_text(with_tables(DOCUMENT.read_text()))


def make_records(folder: Path) -> None:
    """Train all models and write the records of their measurements."""
    for seed, path in enumerate((RECORD, OTHER_SEED)):
        run = abacist.train("add", out=folder / f"add-{seed}", seed=seed)
        path.write_text(json.dumps(measure(run)) + "\n")
    seeds = []
    for seed in LEARNED_SEEDS:
        out = folder / f"learned-{seed}"
        run = abacist.train("add", out=out, seed=seed, settings=LEARNED)
        seeds.append(measure_learned(run))
    record = {"recipe": "add", "settings": LEARNED, "seeds": seeds}
    LEARNED_RECORD.write_text(json.dumps(record) + "\n")


if __name__ == "__main__":
    main()
