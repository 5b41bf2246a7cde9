"""What the lenses find in the default recipe, for docs/how-it-adds.md.

    python benchmarks/how_it_adds.py --out results/how-it-adds.json --pictures docs
    python benchmarks/how_it_adds.py --document      only brings the tables up to date

Trains the recipe with `--seed`, or looks at `--run`. Everything is over test problems; patching is over one
partner for each, which differs in one digit and one carry.
"""

import argparse
import json
import re
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

import abacist
from abacist.errors import ProblemError
from abacist.inspection.ablation import ablation, switches
from abacist.inspection.cache import run_with_cache
from abacist.inspection.carry_probe import carry_probe
from abacist.inspection.lines import batches
from abacist.inspection.patching import patching
from abacist.inspection.place_attention import place_attention
from abacist.inspection.specimen import Specimen
from abacist.intervals import Proportion, percent
from abacist.reports.lens_figures import FIGURES
from abacist.runs.run import Run

ROOT = Path(__file__).parents[1]
DOCUMENT = ROOT / "docs" / "how-it-adds.md"


def errors(specimen: Specimen) -> list[dict[str, Any]]:
    """With each part set to its mean: wrong digits, and how many of them are off by one."""
    subject, problems = specimen.subject, specimen.sample
    rows = []
    for switch in switches(subject, problems):
        digits = wrong = off_by_one = 0
        for _, lines in batches(subject, problems):
            logits, _ = run_with_cache(
                subject.model, lines.tokens.ids, lines.coordinates, switch.mean(lines)
            )
            is_digit = lines.predicts & (lines.labels < 10)
            told, right = logits.cpu().argmax(dim=-1)[is_digit], lines.labels[is_digit]
            difference = (told - right) % 10
            digits += len(right)
            wrong += int((told != right).sum())
            off_by_one += int(((told < 10) & ((difference == 1) | (difference == 9))).sum())
        rows.append(
            {
                "component": switch.component,
                "wrong": Proportion(wrong, digits).to_json(),
                "off by one": Proportion(off_by_one, wrong).to_json(),
            }
        )
    return rows


def effects(specimen: Specimen, num_problems: int) -> list[dict[str, Any]]:
    """Mean effect of single activations on the digit that receives the carry."""
    found: dict[str, list[float]] = {}
    for row in range(len(specimen.sample)):
        try:
            seen = patching(replace(specimen, problem=specimen.sample[row : row + 1]))
        except ProblemError:
            # No single digit of it changes one carry, as in 99+1.
            continue
        effect = dict(zip(seen.components, seen.effect.values.tolist(), strict=True))
        operand, written = (
            token
            for token, pair in enumerate(zip(seen.tokens, seen.partner_tokens, strict=True))
            if pair[0] != pair[1] and token <= seen.predicting
        )
        found.setdefault("the operand digit that differs", []).append(effect["embedding"][operand])
        found.setdefault("the digit written below it", []).append(effect["embedding"][written])
        for name in seen.components[1:-1]:
            found.setdefault(name, []).append(effect[name][seen.predicting])
        if len(found["MLP"]) == num_problems:
            break
    return [
        {
            "patched": name,
            "n": len(values),
            "mean": float(torch.tensor(values).mean()),
            "more than half": Proportion(sum(v > 0.5 for v in values), len(values)).to_json(),
        }
        for name, values in found.items()
    ]


def measure(run: Run, pictures: Path | None) -> dict[str, Any]:
    specimen = run.look("458+67", num_problems=1_000)
    seen = {
        "place-attention": place_attention(specimen).to_json(),
        "ablation": ablation(specimen).to_json(),
        "carry-probe": carry_probe(specimen).to_json(),
    }
    for name, record in seen.items():
        if pictures is not None:
            FIGURES[name](record, pictures / f"how-it-adds-{name}.png")
    return {
        "recipe": run.recipe.name,
        "seed": run.seed,
        **seen,
        "errors": errors(specimen),
        "patching": effects(specimen, 200),
    }


def tables(record: dict[str, Any]) -> dict[str, str]:
    """The tables of the document by name, in Markdown."""
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
            f"| {part['component']} | " + " | ".join(_told(cell) for cell in cells) + " |"
        )
    patched = ["| patched | mean effect | more than half the way |", "|---|---|---|"]
    patched += [
        f"| {row['patched']} | {row['mean']:.2f} | {_told(row['more than half'])} |"
        for row in record["patching"]
    ]
    probes = ["| after | carry read rightly | saying always the same |", "|---|---|---|"]
    probes += [
        f"| {row['stage']} | {_told(row['accuracy'])} | {percent(row['majority'])} |"
        for row in record["carry-probe"]["probes"]
        if row["place"] is None
    ]
    named = {"attention": rows, "ablation": ablated, "patching": patched, "probes": probes}
    return {name: "\n".join(lines) for name, lines in named.items()}


def _told(proportion: dict[str, Any]) -> str:
    if proportion["value"] is None:
        return "–"
    low, high = proportion["interval"]
    return f"{percent(proportion['value'])} ({percent(low)} – {percent(high)}, n = {proportion['n']:,})"


def with_tables(document: str) -> str:
    """The document with every marked table made anew from the committed record."""
    made = tables(json.loads((ROOT / "results" / "how-it-adds.json").read_text()))
    return re.sub(
        r"<!-- table (\w+) -->\n.*?<!-- end -->",
        lambda match: f"<!-- table {match[1]} -->\n{made[match[1]]}\n<!-- end -->",
        document,
        flags=re.DOTALL,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--run", help="a run of the default recipe, instead of training one")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", help="write the record here, as JSON")
    parser.add_argument("--pictures", help="draw pictures in this directory")
    parser.add_argument("--document", action="store_true", help="only bring the tables up to date")
    arguments = parser.parse_args()
    if arguments.document:
        DOCUMENT.write_text(with_tables(DOCUMENT.read_text()))
        return
    with tempfile.TemporaryDirectory() as folder:
        run = (
            abacist.load(arguments.run)
            if arguments.run
            else abacist.train("add", out=Path(folder) / "add", seed=arguments.seed)
        )
        pictures = Path(arguments.pictures) if arguments.pictures else None
        record = measure(run, pictures)
    if arguments.out:
        Path(arguments.out).write_text(json.dumps(record) + "\n")
    for name, table in tables(record).items():
        print(f"{name}\n{table}\n")


if __name__ == "__main__":
    main()
