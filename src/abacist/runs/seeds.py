"""One recipe, many seeds: trained side by side, and what came of them as a distribution.

runs/add-20261121-153012/
  seeds.json      the recipe, the seeds, and the outcome of each that is finished
  seed-0/ …       a run each
"""

import json
import multiprocessing
import statistics
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from abacist import files
from abacist.configuration import from_json, to_json
from abacist.errors import AbacistError, RunError, TrainingDiverged, check_between
from abacist.intervals import Proportion
from abacist.recipes.recipe import Recipe
from abacist.runs import training
from abacist.runs.directory import RunDirectory
from abacist.training.loop import TrainingInterrupted
from abacist.training.threads import usable_processors

_SECONDS_BETWEEN_LOOKS = 0.5


@dataclass(frozen=True)
class Outcome:
    """What became of one seed."""

    seed: int
    steps: int
    seconds: float
    """Of training."""
    steps_to_target: int | None
    """When validation's exact match first reached `stop_at` (1 where a recipe has none)."""
    right: int
    """Test problems answered rightly, drawn as in training."""
    n: int
    """Of so many."""
    errors: int
    """On the whole scorecard."""
    certified: bool
    smallest_margin: float | None
    """Of the certificate."""
    failure: str | None = None
    """Why training stopped before its end."""

    @property
    def exact_match(self) -> Proportion:
        return Proportion(self.right, self.n)


@dataclass(frozen=True)
class Distribution:
    """What came of all seeds."""

    outcomes: list[Outcome]

    @property
    def without_error(self) -> Proportion:
        """Seeds that made no error on their scorecards."""
        good = sum(outcome.errors == 0 and outcome.failure is None for outcome in self.outcomes)
        return Proportion(good, len(self.outcomes))

    @property
    def certified(self) -> Proportion:
        """Seeds with a certificate."""
        return Proportion(sum(o.certified for o in self.outcomes), len(self.outcomes))

    def median(self, of: Callable[[Outcome], float | None]) -> float | None:
        """Over all seeds; one without a value counts as the worst. None where the median has none."""
        values = [of(outcome) for outcome in self.outcomes]
        known = sorted(value for value in values if value is not None)
        middle = [(len(values) - 1) // 2, len(values) // 2]
        if not values or middle[1] >= len(known):
            return None
        return statistics.mean(known[number] for number in middle)

    def to_json(self) -> dict[str, Any]:
        exact = [o.exact_match.value for o in self.outcomes if o.exact_match.value is not None]
        return {
            "outcomes": [asdict(outcome) for outcome in self.outcomes],
            "without_error": self.without_error.to_json(),
            "certified": self.certified.to_json(),
            "median_exact_match": statistics.median(exact) if exact else None,
            "worst_exact_match": min(exact, default=None),
            "median_steps_to_target": self.median(lambda o: o.steps_to_target),
            "median_seconds": self.median(lambda o: o.seconds),
        }


def start(
    recipe: Recipe,
    path: Path,
    seeds: Sequence[int],
    jobs: int | None = None,
    threads: int | None = None,
    device: str = "auto",
    on_progress: Callable[[int, int, str], None] | None = None,
) -> Distribution:
    """Train every seed into its own directory under `path`, `jobs` at a time, score and prove it.

    Unless given, there are as many jobs as processors, and each job gets its share of threads.
    `on_progress` is told steps made, steps in all, and what has become of the seeds so far.
    """
    check_between("seeds", len(seeds), 1, 10_000, 10)
    processors = usable_processors()
    if jobs is not None:
        check_between("jobs", jobs, 1, max(1, processors), processors)
    jobs = min(jobs or processors, len(seeds))
    threads = threads or max(1, processors // jobs)
    check_between("threads", threads, 1, processors, 1)
    if path.exists() and (not path.is_dir() or any(path.iterdir())):
        raise RunError(
            f"{path} exists. Type --resume to go on with it, or another --out for the seeds."
        )
    files.make_directory(path)
    plan = {
        "recipe": to_json(recipe),
        "seeds": list(seeds),
        "jobs": jobs,
        "threads": threads,
        "device": device,
        **training.circumstances(),
    }
    files.write_json(path / "seeds.json", plan)
    return _carry_out(path, plan, on_progress)


def resume(path: Path, on_progress: Callable[[int, int, str], None] | None = None) -> Distribution:
    """Go on with what `start` began: finished seeds stay, others end with the bits they would have had."""
    return _carry_out(path, read_plan(path), on_progress)


def read_plan(path: Path) -> dict[str, Any]:
    """What `seeds.json` says; `RunError` where it is damaged."""
    try:
        plan: dict[str, Any] = json.loads((path / "seeds.json").read_text())
        from_json(Recipe, plan["recipe"])
        if not all(type(seed) is int for seed in [*plan["seeds"], plan["jobs"], plan["threads"]]):
            raise ValueError("seeds, jobs and threads must be whole numbers")
    except (OSError, ValueError, KeyError, TypeError, AbacistError) as error:
        raise RunError(f"{path / 'seeds.json'} is missing or damaged: {error}") from error
    return plan


def _carry_out(
    path: Path, plan: dict[str, Any], on_progress: Callable[[int, int, str], None] | None
) -> Distribution:
    outcomes = {o["seed"]: Outcome(**o) for o in plan.get("outcomes", [])}
    waiting = [seed for seed in plan["seeds"] if seed not in outcomes]
    total = plan["recipe"]["training"]["num_steps"]
    running: dict[int, Future[Outcome]] = {}
    spawn = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(plan["jobs"], mp_context=spawn, max_tasks_per_child=1) as pool:
        while running or waiting:
            # No more than can run: what is submitted would begin even after Ctrl-C, by which
            # the seeds under way save themselves.
            while waiting and len(running) < plan["jobs"]:
                seed = waiting.pop(0)
                arguments = (path / f"seed-{seed}", seed, plan["threads"], plan["device"])
                running[seed] = pool.submit(_train_one, plan["recipe"], *arguments)
            # A seed that has ended makes room at once.
            wait(running.values(), _SECONDS_BETWEEN_LOOKS, FIRST_COMPLETED)
            for seed in [seed for seed, future in running.items() if future.done()]:
                outcomes[seed] = running.pop(seed).result()
                plan["outcomes"] = [asdict(outcomes[s]) for s in plan["seeds"] if s in outcomes]
                files.write_json(path / "seeds.json", plan)
            if on_progress is not None:
                made = sum(_steps_made(path / f"seed-{seed}") for seed in running)
                made += len(outcomes) * total
                on_progress(made, len(plan["seeds"]) * total, _summary(list(outcomes.values())))
    return Distribution([outcomes[seed] for seed in plan["seeds"]])


def _train_one(recipe_json: Any, path: Path, seed: int, threads: int, device: str) -> Outcome:
    """In a process of its own: train one seed, or go on with it, score it and try to prove it."""
    recipe: Recipe = from_json(Recipe, recipe_json)
    failure = None
    try:
        if RunDirectory(path).run_json.is_file():
            run = training.resume(path)
        else:
            run = training.start(recipe, path, seed, threads, device=device)
    except TrainingDiverged as error:
        failure = str(error)
    except TrainingInterrupted as error:
        raise KeyboardInterrupt from error
    records = RunDirectory(path).read_metrics()
    steps, seconds = (records[-1]["step"], records[-1]["seconds"]) if records else (0, 0.0)
    if failure is not None:
        return Outcome(seed, steps, seconds, None, 0, 0, 0, False, None, failure)
    card, certificate = run.score(), run.prove()
    first = next((row.proportion for row in card.rows if row.proportion), Proportion(0, 0))
    target = recipe.training.stop_at or 1.0
    reached = [r["step"] for r in records if (r["exact_match"]["value"] or 0) >= target]
    return Outcome(
        seed=seed,
        steps=steps,
        seconds=round(seconds, 2),
        steps_to_target=min(reached, default=None),
        right=first.successes,
        n=first.n,
        errors=card.errors,
        certified=certificate.certified,
        smallest_margin=certificate.smallest_margin,
    )


def _steps_made(path: Path) -> int:
    records = RunDirectory(path).read_metrics()
    return int(records[-1]["step"]) if records else 0


def _summary(done: list[Outcome]) -> str:
    good = sum(outcome.errors == 0 and outcome.failure is None for outcome in done)
    return f"{len(done)} seeds finished, {good} without an error"
