"""The committed record of a recipe: every seed's cost, curve, errors and certificate.

    python benchmarks/records.py three-digit --seeds 5
    python benchmarks/records.py add subtract multiply divide --seeds 10 --runs runs
    python benchmarks/records.py multiply --seeds 3 --runs runs --add
    python benchmarks/records.py --pages

The first three write `results/RECIPE.json` of each recipe, after every seed. With `--runs DIR` the runs
are kept in DIR/RECIPE, and an interrupted command can be repeated: it resumes where it stopped. With
`--add` the seeds that the record already holds are not trained again. The last one generates
docs/results.md, the tables of README.md and docs/systems/README.md, and the pictures of looped models
from all records.

Seeds are trained one after the other, each in a process of its own, so that seconds and memory are
those that a user sees. With `--jobs N`, N of them are trained side by side, which takes longer for
each: they share the processor's caches and its memory. What a trained model is asked is in
recipes/examinations.py. `seconds` is clock time of training alone; `processor_seconds` does not count
the time that other programs take.
"""

import argparse
import json
import re
import statistics
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import torch

from abacist import recipes
from abacist.intervals import Proportion, percent
from abacist.recipes.examinations import EXAMINATIONS
from abacist.reports import matplotlib_figures, run_records, score_plots, training_plots
from abacist.reports.tables import Table, markdown
from abacist.runs.directory import PLAN, RunDirectory
from abacist.runs.examination import Row
from abacist.runs.outcome import Outcome
from abacist.runs.run import build_model
from abacist.scoring.records import Row as SectionRow
from abacist.scoring.records import Section
from abacist.sweeps import sweep
from abacist.sweeps.local import LocalProcesses

ROOT = Path(__file__).parents[1]
_OUTCOME = ("training, s", "test problems", "wrong", "of", "certified seeds")
"""Columns about the seeds of a recipe."""

DOCUMENTS = {
    "encoder": ("parallel-encoder", "parallel-encoder-torch", "parallel", "multiply", "sort"),
    "looped": (
        "looped-abacus-1x16", "looped-abacus-8x2", "looped-abacus-16x1", "looped-abacus-post",
        "looped-abacus-small", "add",
    ),
    "five operations": ("five-operations-10m", "five-operations"),
    "spaces": ("spaced-gpt2", "spaced"),
    "grokking": ("three-digit-grokking", "three-digit"),
    "none": ("subtract", "add-many", "divide", "modulo", "calculator", "signed-calculator"),
}  # fmt: skip
"""The published systems, each with its recipes, ours last. `none` holds what none of them does."""

# Making a record ---------------------------------------------------------------------------------


def make_record(
    name: str, count: int, threads: int, jobs: int, folder: Path, is_added_to: bool
) -> None:
    """Train and examine the seeds up to `count` in `folder`, and write the record after each."""
    out = ROOT / "results" / f"{name}.json"
    committed = json.loads(out.read_text())["seeds"] if is_added_to and out.exists() else []
    written: set[int] = set()

    def write(progress: sweep.Progress) -> None:
        outcomes = progress.outcomes
        if len(outcomes) == len(written):
            return
        seeds = with_outcomes(committed, outcomes)
        record = {"recipe": name, "threads": threads, "seeds": seeds}
        out.write_text(json.dumps(record, indent=1) + "\n")
        for outcome in outcomes:
            if outcome.seed not in written:
                written.add(outcome.seed)
                verdict = "" if outcome.certificate is None else f", certified: {outcome.certified}"
                print(f"{name}, seed {outcome.seed}: {outcome.seconds} s{verdict}", flush=True)

    path = folder / name
    executor = LocalProcesses(jobs, threads)
    if (path / PLAN).is_file():
        results = sweep.resume(path, executor, write)
    else:
        held = {seed["seed"] for seed in committed}
        seeds = [seed for seed in range(count) if seed not in held]
        plan = sweep.of_seeds(recipes.find(name), seeds, threads, examination=name)
        results = sweep.start(plan, path, executor, write)
    for run, reason in results.failures.items():
        print(f"{run} failed: {reason}", flush=True)
    first = run_records.read_metrics(RunDirectory(path / "seed-0"), [])
    if first:
        matplotlib_figures.draw(training_plots.of_run(first), out.with_suffix(".png"))


def with_outcomes(
    committed: list[dict[str, Any]], outcomes: Iterable[Outcome]
) -> list[dict[str, Any]]:
    """Return the seeds of a record with those of `outcomes` added or replaced, in ascending order."""
    seeds = {seed["seed"]: seed for seed in committed}
    seeds |= {outcome.seed: outcome.to_json() for outcome in outcomes}
    return [seeds[number] for number in sorted(seeds)]


# Pages made of records ---------------------------------------------------------------------------

HEAD = """\
# Results

This page has a section for every recipe with a committed record, with the command that makes the record.
`python benchmarks/records.py --pages` generates the page.

Training times are seconds of the processor, which do not count the time that other work takes from it.
Other work on the same core can still lengthen them, since it shares the caches and the execution units.
A seed that was resumed has seconds of the clock in its column and does not count in the median.
All problems belong to the test split, unless a row names every problem of a space or a set of probes.
Errors are counted on the last checkpoint.

A seed's column counts its wrong answers among `n` problems; `n` is a range where seeds differ.
The last column is the 95 % Wilson interval of the share of right answers for the worst seed."""

LEARNS = {
    "add": "sums of every length",
    "add-tiny": "the same with few parameters",
    "add-tiny-relu": "the same with ReLU, for the theorem in Coq",
    "add-many": "sums of any count of numbers",
    "subtract": "differences, also negative",
    "multiply": "products, written as on paper",
    "divide": "quotients and remainders",
    "modulo": "remainders alone",
    "calculator": "+ − × // % of every length",
    "signed-calculator": "the same with negative numbers",
    "sort": "sorting up to 52 numbers",
    "three-digit": "three-digit sums",
    "spaced": "four-digit sums in any spacing",
    "parallel": "all digits of a sum at once",
    "five-operations": "+ − × // % up to 999",
    "three-digit-grokking": "published: three-digit sums",
    "parallel-encoder": "published: all digits at once",
    "parallel-encoder-torch": "published: a variant",
    "spaced-gpt2": "published: spaced sums",
    "looped-abacus-small": "published: a looped model, made smaller",
}
"""What each recipe with a record learns, in a few words."""


def records() -> dict[str, dict[str, Any]]:
    """Return all committed records by recipe."""
    paths = {name: ROOT / "results" / f"{name}.json" for name in recipes.RECIPES}
    return {name: json.loads(path.read_text()) for name, path in paths.items() if path.exists()}


def training_seconds(seeds: list[dict[str, Any]]) -> float:
    """Return the median training time, the one figure that the README, this page and recipes state.

    It is counted in seconds of the processor, of those seeds that were trained in one piece; a seed
    that was resumed has lost those before. Where all were resumed, seconds of the clock are counted.
    """
    processor = [seed["processor_seconds"] for seed in seeds]
    whole = [seconds for seconds in processor if seconds is not None]
    return float(statistics.median(whole or [seed["seconds"] for seed in seeds]))


def certified(seeds: list[dict[str, Any]]) -> str:
    """Return the number of certified seeds with its 95 % interval, as `9 of 10 (60–98 %)`."""
    proofs = [seed["certificate"] for seed in seeds if seed["certificate"]]
    if not proofs:
        return "–"
    count = sum(proof["certified"] for proof in proofs)
    bounds = Proportion(count, len(proofs)).interval
    assert bounds is not None
    return f"{count} of {len(proofs)} ({100 * bounds[0]:.0f}–{100 * bounds[1]:.0f} %)"


def interval(rows: list[Row]) -> str:
    """Return the 95 % interval of the proportion of right answers in the worst seed; a dash for probes."""
    # A probe is a fixed pair of problems and no sample of any.
    if rows[0]["name"].startswith("99…9"):
        return "–"
    worst = max(rows, key=lambda row: row["errors"] / max(1, row["n"]))
    bounds = Proportion(worst["n"] - worst["errors"], worst["n"]).interval
    return "–" if bounds is None else f"{percent(bounds[0])} – {percent(bounds[1])}"


def same_rows(seeds: list[dict[str, Any]]) -> Iterator[list[Row | None]]:
    """Yield every row of the first seed, with the same row of the others; None where one has none."""
    tables = [
        {(row["suite"], row["name"], row["measure"]): row for row in seed["rows"]} for seed in seeds
    ]
    for key in tables[0]:
        yield [table.get(key) for table in tables]


def command(name: str, count: int) -> str:
    return f"python benchmarks/records.py {name} --seeds {count}"


def errors(rows: list[Row]) -> str:
    """Return two cells: wrong answers of all seeds together, and the number of problems."""
    wrong, asked = sum(row["errors"] for row in rows), sum(row["n"] for row in rows)
    return f"{wrong:,} | {asked:,}"


def summary() -> str:
    """Return the README's table: one line for each recipe, with its first headline row."""
    columns = ("recipe", "learns", "parameters", *_OUTCOME)
    lines = []
    for name, record in records().items():
        seeds = record["seeds"]
        first = headline_rows(name, seeds)[0]
        seconds = training_seconds(seeds)
        lines.append(
            [
                f"[`{name}`](docs/results.md#{name})",
                LEARNS[name],
                f"{seeds[0]['parameters']:,}",
                f"{seconds:,.0f}",
                first[0]["name"],
                *errors(first).split(" | "),
                certified(seeds),
            ]
        )
    return markdown(Table("", columns, [lines], num_text_columns=len(columns)))


def headline_rows(name: str, seeds: list[dict[str, Any]]) -> list[list[Row]]:
    """Return the rows that represent a recipe, in the order of its examination."""
    rows_by_name = {}
    for cells in same_rows(seeds):
        rows = [row for row in cells if row is not None]
        rows_by_name[rows[0]["name"]] = rows
    return [
        rows
        for label in EXAMINATIONS[name].headlines
        for row_name, rows in rows_by_name.items()
        if label in (row_name, row_name.split(":")[0])
    ]


def side_by_side() -> str:
    """Return the table of the published systems, each followed by ours, with one line per headline row."""
    columns = ("document", "recipe", "parameters", *_OUTCOME)
    lines: list[list[str]] = []
    committed = records()
    for document, names in DOCUMENTS.items():
        for name in names:
            if name not in committed:
                missing = ["", "no record: it needs a GPU", "", "", ""]
                lines.append([document, f"`{name}`", f"{parameters(name):,}", *missing])
                continue
            seeds = committed[name]["seeds"]
            seconds = training_seconds(seeds)
            recipe = f"[`{name}`](../results.md#{name})"
            first = [document, recipe, f"{seeds[0]['parameters']:,}", f"{seconds:,.0f}"]
            last = certified(seeds)
            for rows in headline_rows(name, seeds):
                lines.append([*first, rows[0]["name"], *errors(rows).split(" | "), last])
                first, last = [""] * 4, ""
    return markdown(Table("", columns, [lines], num_text_columns=len(columns)))


def parameters(name: str) -> int:
    """Return the number of parameters of a recipe's model."""
    with torch.device("meta"):
        return build_model(recipes.find(name)).num_parameters


def chapter(name: str, record: dict[str, Any]) -> str:
    """Return a recipe's section of the results page, with one column for each seed."""
    seeds = record["seeds"]
    memory = max(seed["peak_memory_mib"] or 0 for seed in seeds)
    lines = [
        f"## {name}",
        "",
        f"`{command(name, len(seeds))}` ([record](../results/{name}.json))",
        "",
        f"{seeds[0]['parameters']:,} parameters, {seeds[0]['steps']:,} steps, "
        f"{training_seconds(seeds):,.0f} s of training (median), at most {memory:,} MiB of memory.",
        "",
        "| wrong | " + " | ".join(f"seed {seed['seed']}" for seed in seeds) + " | n | 95 % right |",
        "|---|" + "---|" * (len(seeds) + 2),
    ]
    for cells in same_rows(seeds):
        rows = [row for row in cells if row is not None]
        measure = "" if rows[0]["measure"] == "exact match" else f", {rows[0]['measure']}"
        wrong = " | ".join("–" if row is None else f"{row['errors']:,}" for row in cells)
        sizes = sorted({row["n"] for row in rows})
        n = f"{sizes[0]:,}" if len(sizes) == 1 else f"{sizes[0]:,} to {sizes[-1]:,}"
        lines.append(f"| {rows[0]['name']}{measure} | {wrong} | {n} | {interval(rows)} |")
    times = [seed["processor_seconds"] or seed["seconds"] for seed in seeds]
    lines.append(seed_row("training, s", [f"{seconds:,}" for seconds in times]))
    proofs = [seed["certificate"] for seed in seeds]
    if all(proofs):
        wrong_cases = ["–" if proof["wrong"] is None else f"{proof['wrong']:,}" for proof in proofs]
        lines += [
            seed_row("certified", ["yes" if proof["certified"] else "**no**" for proof in proofs]),
            seed_row("smallest margin", [str(proof["smallest_margin"]) for proof in proofs]),
            seed_row("wrong neighbourhoods", wrong_cases, f"{proofs[0]['neighbourhoods'] or 0:,}"),
            seed_row("proof, s", [str(proof["seconds"]) for proof in proofs]),
        ]
    machine = seeds[0]["circumstances"]
    threads = ", ".join(sorted({str(seed["threads"]) for seed in seeds}))
    lines += [
        "",
        f"{machine['machine']}, {machine['cores']} cores, threads {threads}, "
        f"torch {machine['torch']}, Python {machine['python']}.",
    ]
    if (ROOT / "results" / f"{name}.png").exists():
        lines += ["", f"![Loss and exact match of seed 0 by step](../results/{name}.png)"]
    return "\n".join(lines)


def seed_row(name: str, cells: list[str], n: str = "") -> str:
    """Return a table row with one cell for each seed."""
    return f"| {name} | {' | '.join(cells)} | {n} | |"


def page() -> str:
    """Return the content of docs/results.md."""
    return "\n\n".join([HEAD, *(chapter(*named) for named in records().items())]) + "\n"


def with_table(text: str, table: str) -> str:
    """Return a document with its table replaced."""
    marked = r"(<!-- records -->\n).*?(<!-- end of records -->)"
    return re.sub(marked, lambda m: f"{m[1]}{table}\n{m[2]}", text, flags=re.DOTALL)


def pages() -> dict[Path, str]:
    """Return the content of every document with tables from records, by path."""
    readme, systems = ROOT / "README.md", ROOT / "docs" / "systems" / "README.md"
    return {
        ROOT / "docs" / "results.md": page(),
        readme: with_table(readme.read_text(), summary()),
        systems: with_table(systems.read_text(), side_by_side()),
    }


def recurrences(record: dict[str, Any]) -> Section | None:
    """Return what the first seed of a looped model does with other numbers of recurrences."""
    rows = [
        SectionRow(row["name"], "", 0, Proportion(row["n"] - row["errors"], row["n"]))
        for row in record["seeds"][0]["rows"]
        if row["suite"] == "recurrences"
    ]
    trained = recipes.find(record["recipe"]).model.recurrences
    return Section("", rows, details={"trained_recurrences": trained}) if rows else None


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("recipes", nargs="*", type=_recipe, metavar="RECIPE")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--jobs", type=int, default=1, help="seeds side by side (default: 1)")
    parser.add_argument("--threads", type=int, default=1, help="number of threads (default: 1)")
    parser.add_argument("--runs", type=Path, help="keep the runs in this directory")
    parser.add_argument("--add", action="store_true", help="keep the seeds of the record")
    parser.add_argument("--pages", action="store_true", help="only generate the pages")
    arguments = parser.parse_args()
    if arguments.pages:
        for path, text in pages().items():
            path.write_text(text)
        for name, record in records().items():
            looped = recurrences(record)
            if looped is not None:
                picture = ROOT / "results" / f"{name}-recurrences.png"
                matplotlib_figures.draw(score_plots.of_section("recurrences", looped), picture)
        return
    if not arguments.recipes:
        parser.error("type a recipe, or --pages")
    count, threads, jobs = arguments.seeds, arguments.threads, arguments.jobs
    with tempfile.TemporaryDirectory() as temporary:
        folder = arguments.runs or Path(temporary)
        for name in arguments.recipes:
            make_record(name, count, threads, jobs, folder, arguments.add)


def _recipe(name: str) -> str:
    if name not in EXAMINATIONS:
        raise argparse.ArgumentTypeError(f"{name!r} is none of {', '.join(EXAMINATIONS)}")
    return name


if __name__ == "__main__":
    main()
