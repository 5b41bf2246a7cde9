"""One seed from training to certificate: train it, score it, try to prove it, and return its outcome.

What is asked of the trained model is an `Examination` (recipes/examinations.py).
"""

import resource
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from abacist import generators
from abacist.configuration import override
from abacist.data.split import draw_from_split
from abacist.errors import AbacistError, ConfigurationError, TrainingDiverged
from abacist.models.teacher_forcing import coordinates_of
from abacist.recipes.examinations import Examination, Sample, SortingSample
from abacist.recipes.recipe import Recipe
from abacist.runs import training
from abacist.runs.circumstances import circumstances
from abacist.runs.directory import RunDirectory, read_run_json
from abacist.runs.outcome import CURVE_POINTS, Outcome
from abacist.runs.run import Run, build_model, build_problems, examples_of
from abacist.scoring.exact_match import exact_match
from abacist.scoring.samples import distinct
from abacist.scoring.scorecard import select_suites
from abacist.scoring.trained_model import TrainedModel
from abacist.tasks.config import ArithmeticConfig, SortingConfig
from abacist.tasks.problems import Shapes
from abacist.tasks.task import Task
from abacist.training.loop import Observer, TrainingStopped

Row = dict[str, Any]
"""One count: `suite`, `name`, `measure`, `errors` of `n`, `smallest_margin`."""


def train_and_examine(
    recipe: Recipe,
    path: Path,
    seed: int,
    examination: Examination,
    threads: int,
    device: str,
    observer: Observer | None = None,
    accept_changed_extension: bool = False,
) -> Outcome:
    """Train one seed into `path`, or resume it there, then examine it and return the outcome.

    `observer` receives the events of the training and may stop it by raising `TrainingStopped`.
    A run whose extension has changed is resumed only if `accept_changed_extension` is set.
    Peak memory and processor time are those of this process, which should do nothing else.
    """
    directory, failure, run = RunDirectory(path), None, None
    resumed = directory.run_json.is_file()
    begin = time.process_time()
    try:
        run = (
            training.resume(path, observer, accept_changed_extension=accept_changed_extension)
            if resumed
            else training.start(recipe, path, seed, threads, observer=observer, device=device)
        )
    except (TrainingDiverged, TrainingStopped) as error:
        failure = str(error)
    processor_seconds = None if resumed else round(time.process_time() - begin, 1)
    metrics, begun = directory.read_metrics(), read_run_json(directory)
    target = recipe.training.stop_at or 1.0
    matched = "exact_answer" if recipe.training.stop_on == "answer" else "exact_match"
    reached = (r["step"] for r in metrics if (r[matched]["value"] or 0) >= target)
    return Outcome(
        seed=seed,
        seconds=round(metrics[-1]["seconds"], 1) if metrics else 0.0,
        processor_seconds=processor_seconds,
        steps=metrics[-1]["step"] if metrics else 0,
        batch_size=recipe.training.batch_size,
        threads=begun["threads"],
        peak_memory_mib=_peak_memory_mib(),
        parameters=begun["parameters"],
        steps_to_target=next(reached, None),
        validation=metrics[-1]["exact_match"]["value"] if metrics else None,
        validation_loss=metrics[-1]["validation_loss"] if metrics else None,
        curve=[
            {key: record[key] for key in ("step", "loss", "validation_loss", "seconds")}
            | {name: record[name]["value"] for name in ("exact_match", "token_accuracy")}
            | {"training_token_accuracy": record["training_sample"]["token_accuracy"]["value"]}
            for record in metrics[:: max(1, len(metrics) // CURVE_POINTS)]
        ],
        rows=[]
        if run is None
        else [*_suite_rows(run, examination), *_sample_rows(run, examination)],
        certificate=_certificate(run) if run is not None and examination.proved else None,
        circumstances=circumstances(),
        failure=failure,
    )


@torch.no_grad()
def check_examination(recipe: Recipe, examination: Examination) -> None:
    """Raise `AbacistError` if models of `recipe` cannot be examined in this way, before one is trained.

    One problem of each sample is drawn, written and embedded by an untrained model.
    """
    task, format = build_problems(recipe)
    model = build_model(recipe).eval()
    for suite, settings in examination.suites.items():
        scoring = override(recipe.scoring, settings)
        examples = examples_of(recipe.training)
        untrained = TrainedModel(model, task, format, recipe.split, scoring, examples=examples)
        select_suites([suite], untrained)
    for sample in examination.samples:
        try:
            generator = generators.generator(0, "record", sample.name)
            sample_task, shapes = _draw_shapes(sample, recipe, generator, count=1)
            problem = draw_from_split(sample_task, shapes, "test", recipe.split, generator)
            line = format.write(problem, task.answer(problem))
            model.embed(line.ids, model.coordinates_by_scheme(coordinates_of(line)))
        except AbacistError as error:
            raise ConfigurationError(
                f"the models cannot be asked {sample.name}: {error}"
            ) from error


def _peak_memory_mib() -> int:
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    # Linux counts KiB, macOS bytes.
    return memory // (1024 * 1024 if sys.platform == "darwin" else 1024)


def _suite_rows(run: Run, examination: Examination) -> Iterator[Row]:
    """Score the model by every suite and yield the rows that count something."""
    for suite, settings in examination.suites.items():
        for row in run.score((suite,), None, **settings).sections[suite].rows:
            if row.proportion is not None:
                yield {
                    "suite": suite,
                    "name": row.name,
                    "measure": row.measure,
                    "errors": row.proportion.errors,
                    "n": row.proportion.n,
                    "smallest_margin": row.smallest_margin and round(row.smallest_margin, 2),
                }


def _sample_rows(run: Run, examination: Examination) -> Iterator[Row]:
    """Yield exact match on the examination's own samples of the test split."""
    for sample in examination.samples:
        generator = generators.generator(run.seed, "record", sample.name)
        # A quarter more, because some of them are equal.
        task, shapes = _draw_shapes(sample, run.recipe, generator, sample.n + sample.n // 4)
        problems = draw_from_split(task, shapes, "test", run.recipe.split, generator)
        verdicts = exact_match(run.trained_model(), distinct(problems, sample.n))
        yield {
            "suite": "sample",
            "name": sample.name,
            "measure": "exact match",
            "errors": verdicts.proportion.errors,
            "n": verdicts.proportion.n,
            "smallest_margin": round(float(verdicts.margins.min()), 2),
        }


def _draw_shapes(
    sample: Sample, recipe: Recipe, generator: torch.Generator, count: int
) -> tuple[Task, Shapes]:
    """Return the task that draws the problems of a sample, and their shapes.

    Raises `ConfigurationError` if the recipe's task has no such problems.
    """
    trained_task = recipe.task
    if isinstance(sample, SortingSample) and isinstance(trained_task, SortingConfig):
        (fewest, most), (shortest, longest) = sample.numbers, sample.digits
        sorting = SortingConfig(
            min_numbers=fewest, max_numbers=most, min_digits=shortest, max_digits=longest
        ).build()
        return sorting, sorting.draw_shapes(count, generator)
    operations = trained_task.operations if isinstance(trained_task, ArithmeticConfig) else ()
    if isinstance(sample, SortingSample) or sample.operation not in operations:
        raise ConfigurationError(
            f"the recipe has the task {' '.join([trained_task.kind, ','.join(operations)]).strip()}. "
            "Leave these problems out, and name suites."
        )
    assert isinstance(trained_task, ArithmeticConfig)
    digits = torch.tensor([sample.digits]).expand(count, 2)
    task = replace(trained_task, sampling=sample.sampling, carry_chains=()).build()
    shapes = Shapes.of(digits, sample.operation)
    if sample.sampling == "carry-chains":
        shapes = replace(shapes, chain_B=digits.amax(dim=1))
    return task, shapes


def _certificate(run: Run) -> dict[str, Any]:
    certificate = run.prove()
    margin = certificate.smallest_margin
    return {
        "certified": certificate.certified,
        "reason": certificate.reason,
        "neighbourhoods": certificate.neighbourhoods,
        "wrong": certificate.wrong,
        "smallest_margin": margin and round(margin, 2),
        "seconds": round(certificate.seconds, 1),
    }
