"""The measurements, tables and pictures of docs/how-it-calculates.md.

    python benchmarks/how_it_calculates.py runs/calculator
    python benchmarks/how_it_calculates.py --document      only tables and pictures, from the record

The first command measures a run of the recipe `calculator` with the lenses, in some minutes, and writes
`results/how-it-calculates.json`. Everything is measured for each notation alone, on test problems of at
most 6 digits with right answers so far. // and % share a notation.
"""

import argparse
import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

import abacist
from abacist.formats.annotated import EVERYWHERE
from abacist.inspection.ablation import ablation, exact_match_with
from abacist.inspection.cache import ActivationCache, Hook, name_of, run_with_cache
from abacist.inspection.inspected_lines import InspectedLines, batches
from abacist.inspection.inspected_problem import InspectedProblem
from abacist.intervals import percent
from abacist.reports import matplotlib_figures
from abacist.reports.plots import HeatMap
from abacist.reports.tables import Table, markdown

ROOT = Path(__file__).parents[1]
DOCUMENT = ROOT / "docs" / "how-it-calculates.md"
RECORD = ROOT / "results" / "how-it-calculates.json"

EXAMPLES = {
    "sums": "458+67",
    "differences": "458-67",
    "products": "458*67",
    "divisions": "458//67",
}
"""Each notation, with a problem that is written in it."""
NUM_PROBLEMS = 500
GROUP = 64
"""Number of hidden units that are set to their means together: a sixth of all."""
_ANY = 1_000
"""Distance of tokens that stand in every row or at every place."""
Distance = tuple[int, int]
"""Row and place of a token, minus those of the token that predicts."""
_LEAST_ATTENTION = 0.05
"""Tokens at distances that get less mean attention, from every head and in every notation, have no column."""

# Measurements --------------------------------------------------------------------------------


def measure(run: abacist.Run) -> dict[str, Any]:
    """Measure heads, hidden units and attention in every notation."""
    inspected = {name: in_its_notation(run, problem) for name, problem in EXAMPLES.items()}
    parts = {name: ablation(notation).to_json() for name, notation in inspected.items()}
    variance, means = {}, {}
    for name, notation in inspected.items():
        means[name], variance[name] = hidden_units(notation)
    shares = {name: values / values.sum() for name, values in variance.items()}
    groups = {
        f"the {GROUP} that write most in {name}": own.topk(GROUP).indices
        for name, own in shares.items()
    }
    order = torch.randperm(len(shares["sums"]), generator=torch.Generator().manual_seed(0))
    groups[f"{GROUP} at random"] = order[:GROUP]
    return {
        "seed": run.seed,
        "n": {name: len(notation.sample) for name, notation in inspected.items()},
        "ablation": parts,
        "overlap": {
            name: {other: float(torch.minimum(own, shares[other]).sum()) for other in shares}
            for name, own in shares.items()
        },
        "half": {name: units_for_half(own) for name, own in shares.items()},
        "groups": {
            group: {
                name: without_units(notation, units, means[name])
                for name, notation in inspected.items()
            }
            for group, units in groups.items()
        },
        "attention": attention_by_distance(inspected),
    }


def in_its_notation(run: abacist.Run, problem: str) -> InspectedProblem:
    """Inspect a problem with a test sample of its own notation alone."""
    inspected = run.look(problem, num_problems=NUM_PROBLEMS)
    trained_model = inspected.trained_model.in_notation_of(inspected.problem)
    return replace(inspected, trained_model=trained_model)


@torch.no_grad()
def hidden_units(inspected: InspectedProblem) -> tuple[Tensor, Tensor]:
    """Return the mean of each hidden unit over tokens that predict, and the variance of what it writes, (F,)."""
    model = inspected.trained_model.model
    total = square = torch.zeros(model.config.mlp_width, dtype=torch.float64)
    count = 0
    for lines, cache in cached(inspected):
        active = cache["post", 0][lines.predicts].double()
        total, square = total + active.sum(0), square + (active**2).sum(0)
        count += len(active)
    mean = total / count
    written = model.blocks[0].mlp.down.weight.double().norm(dim=0)  # type: ignore[union-attr,operator]
    return mean, (square / count - mean**2) * written**2


@torch.no_grad()
def cached(inspected: InspectedProblem) -> Iterator[tuple[InspectedLines, ActivationCache]]:
    """Yield the lines of the sample in batches, each with all activations."""
    trained_model = inspected.trained_model
    for _, lines in batches(trained_model, inspected.sample):
        yield lines, run_with_cache(trained_model.model, lines.tokens.ids, lines.coordinates)[1]


def units_for_half(shares: Tensor) -> int:
    """Return the number of hidden units that write half of the variance."""
    return int((shares.sort(descending=True).values.cumsum(0) < 0.5).sum()) + 1


def without_units(inspected: InspectedProblem, units: Tensor, means: Tensor) -> dict[str, Any]:
    """Measure exact match with some hidden units set to their means in this notation."""

    def hook(active: Tensor) -> Tensor:
        return active.index_copy(2, units, means[units].to(active).expand(*active.shape[:2], -1))

    def hooks(lines: InspectedLines) -> dict[str, Hook]:
        return {name_of("post", 0): hook}

    return exact_match_with(inspected.trained_model, inspected.sample, hooks).to_json()


def attention_by_distance(inspected: dict[str, InspectedProblem]) -> dict[str, Any]:
    """Measure the mean attention of each head by distance in rows and places from the token that predicts."""
    means: dict[str, dict[Distance, Tensor]] = {}
    for name, notation in inspected.items():
        sums: dict[Distance, Tensor] = {}
        count = 0
        for lines, cache in cached(notation):
            count += int(lines.predicts.sum())
            for distance, attention in _by_distance(lines, cache["pattern", 0]):
                sums[distance] = sums.get(distance, torch.zeros_like(attention)) + attention
        means[name] = {distance: total / count for distance, total in sums.items()}
    distances = sorted(
        {
            distance
            for table in means.values()
            for distance, attention in table.items()
            if float(attention.max()) >= _LEAST_ATTENTION
        },
        key=_from_the_start_token_on,
    )
    nothing = torch.zeros(next(iter(inspected.values())).trained_model.model.config.num_heads)
    return {
        name: {_label(distance): table.get(distance, nothing).tolist() for distance in distances}
        for name, table in means.items()
    }


def _by_distance(lines: InspectedLines, pattern: Tensor) -> Iterator[tuple[Distance, Tensor]]:
    """Yield each distance with the attention that it gets in a batch, summed over queries, by head."""
    tokens = lines.tokens
    assert tokens.row is not None
    rows, places = _distances(tokens.row.long()), _distances(tokens.place.long())
    seen = (pattern.amax(dim=1) > 1e-6) & lines.predicts.unsqueeze(2)
    for row, place in set(zip(rows[seen].tolist(), places[seen].tolist(), strict=True)):
        at_distance = seen & (rows == row) & (places == place)
        yield (row, place), (pattern.transpose(0, 1) * at_distance).sum((1, 2, 3))


def _distances(coordinate: Tensor) -> Tensor:
    """Return key minus query, (B, Q, T); `_ANY` for keys that stand everywhere."""
    distance = coordinate.unsqueeze(1) - coordinate.unsqueeze(2)
    is_everywhere = (coordinate == EVERYWHERE).unsqueeze(1).expand_as(distance)
    return distance.masked_fill(is_everywhere, _ANY)


def _from_the_start_token_on(distance: Distance) -> tuple[bool, bool, int, int]:
    """Sort key of distances: the start token, then rows from the own one upwards, then every row."""
    row, place = distance
    return distance != (_ANY, _ANY), row == _ANY, -row, place


def _label(distance: Distance) -> str:
    """Return the name of a distance.

    >>> _label((-2, 0))
    '−2 rows,\\nsame place'
    """
    if distance == (_ANY, _ANY):
        return "start"
    return ",\n".join(_length(d, unit) for d, unit in zip(distance, ("row", "place"), strict=True))


def _length(distance: int, unit: str) -> str:
    if distance == _ANY:
        return f"every {unit}"
    if distance == 0:
        return f"same {unit}"
    return f"{distance:+d} {unit}".replace("-", "−") + ("s" if abs(distance) > 1 else "")


# Tables and pictures -------------------------------------------------------------------------


def tables(record: dict[str, Any]) -> dict[str, str]:
    """Return the tables of the document by name, in Markdown."""
    notations = list(EXAMPLES)
    parts = [part["component"] for part in record["ablation"][notations[0]]["without"]]
    without = [["nothing", *(_percentage(record["ablation"][name]["whole"]) for name in notations)]]
    for number, part in enumerate(parts):
        entries = [record["ablation"][name]["without"][number]["mean"] for name in notations]
        without.append([part, *(_percentage(entry) for entry in entries)])
    groups = [
        [group, *(_percentage(row[name]) for name in notations)]
        for group, row in record["groups"].items()
    ]
    overlap = [
        [name, *(percent(row[other]) for other in notations), str(record["half"][name])]
        for name, row in record["overlap"].items()
    ]
    return {
        "heads": markdown(Table("", ("set to its mean", *notations), [without])),
        "units": markdown(Table("", ("hidden units set to their means", *notations), [groups])),
        "overlap": markdown(Table("", ("", *notations, "units that write half"), [overlap])),
    }


def _percentage(proportion: dict[str, Any]) -> str:
    low, high = proportion["interval"]
    share = percent(proportion["value"])
    return f"{share} ({percent(low)}–{percent(high)}, n = {proportion['n']:,})"


def pictures(record: dict[str, Any]) -> Sequence[HeatMap]:
    """Return a picture of each notation: the attention of every head by distance."""
    return [
        HeatMap(
            title=name,
            values=list(map(list, zip(*table.values(), strict=True))),
            rows=[f"head {head}" for head in range(len(next(iter(table.values()))))],
            columns=list(table),
            column_label="from the token that predicts",
            value_label="mean attention",
            colours="Blues",
            texts=[
                [f"{100 * share:.0f}" if share >= 0.005 else "" for share in row]
                for row in zip(*table.values(), strict=True)
            ],
        )
        for name, table in record["attention"].items()
    ]


def with_tables(document: str) -> str:
    """Return the document with every marked table generated from the committed record."""
    table_of = tables(json.loads(RECORD.read_text()))
    return re.sub(
        r"<!-- table (\w+) -->\n.*?<!-- end -->",
        lambda match: f"<!-- table {match[1]} -->\n{table_of[match[1]]}\n<!-- end -->",
        document,
        flags=re.DOTALL,
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("run", nargs="?", help="directory of a run of the recipe calculator")
    parser.add_argument("--document", action="store_true", help="only generate tables and pictures")
    arguments = parser.parse_args()
    if arguments.document == bool(arguments.run):
        parser.error("type a run directory, or --document.")
    if arguments.run:
        torch.set_num_threads(1)
        RECORD.write_text(json.dumps(measure(abacist.load(arguments.run)), indent=1) + "\n")
    record = json.loads(RECORD.read_text())
    matplotlib_figures.draw(pictures(record), DOCUMENT.with_suffix(".png"), columns=1)
    if DOCUMENT.exists():
        DOCUMENT.write_text(with_tables(DOCUMENT.read_text()))


if __name__ == "__main__":
    main()
