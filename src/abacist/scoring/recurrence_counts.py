"""The suite `recurrences`: a looped model, run more or fewer times than in training."""

from dataclasses import replace

import torch

from abacist import generators
from abacist.data.split import draw_from_split
from abacist.errors import ProblemError
from abacist.models.transformer import Transformer
from abacist.scoring.judge import Judge
from abacist.scoring.samples import as_in_training, distinct
from abacist.scoring.suite import Progress, Row, Section, Suite
from abacist.scoring.trained_model import TrainedModel
from abacist.tasks.arithmetic import Arithmetic
from abacist.tasks.problems import Problems, Shapes

LOOPS = (1, 2, 4, 8, 16, 32)
"""How often the layers are run, beside as often as in training."""


def by_recurrences(trained_model: TrainedModel, on_progress: Progress) -> Section:
    """Exact match for every number of loops: on trained lengths, and on operands twice as long."""
    trained = trained_model.model.config.recurrences
    loops = sorted({*LOOPS, trained})
    samples = [
        ("trained lengths", "trained", _longest(trained_model), _as_in_training(trained_model))
    ]
    twice = _twice_as_long(trained_model)
    if twice is not None:
        samples.append(
            (f"{2 * _longest(trained_model)} digits", "beyond", 2 * _longest(trained_model), twice)
        )
    work = sum(loops) * sum(len(problems) for *_, problems in samples)
    judge = Judge(trained_model)
    rows: list[Row] = []
    done = 0
    for name, kind, digits, problems in samples:
        for count in loops:
            looped = replace(trained_model, model=with_recurrences(trained_model.model, count))
            told = f"{name}, {count} loop{'s' * (count > 1)}"
            label = told + " (as in training)" * (count == trained)

            def report(
                judged: int, told: str = told, count: int = count, before: int = done
            ) -> None:
                on_progress(told, before + count * judged, work)

            try:
                verdicts = judge.verdicts(problems, report, trained_model=looped, row=label)
                rows.append(judge.row(label, kind, digits, verdicts))
            except ProblemError as error:
                rows.append(Row(label, kind, digits, None, note=str(error)))
            done += count * len(problems)
    return judge.section("Recurrences when tested", rows, trained_recurrences=trained)


def _obstacle(trained_model: TrainedModel) -> str | None:
    if trained_model.model.config.recurrences > 1:
        return None
    return (
        "the model runs its layers once and has no recurrence. "
        "Train with --model.recurrences 8, or score another suite."
    )


RECURRENCES = Suite("a looped model with 1, 2, 4, 8, 16 and 32 loops", _obstacle, by_recurrences)


def with_recurrences(model: Transformer, count: int) -> Transformer:
    """The same model, its layers run so many times; weights are shared."""
    config = replace(model.config, recurrences=count)
    looped = Transformer(config, model.embedding.num_embeddings)
    looped.load_state_dict(model.state_dict(), assign=True)
    return looped.to(model.device).eval()


def _longest(trained_model: TrainedModel) -> int:
    task = trained_model.task
    return task.config.longest_operand if isinstance(task, Arithmetic) else 0


def _as_in_training(trained_model: TrainedModel) -> Problems:
    return as_in_training(trained_model, trained_model.scoring.num_problems, "recurrences")


def _twice_as_long(trained_model: TrainedModel) -> Problems | None:
    """Test problems with all operands twice as long as the longest in training."""
    task = trained_model.task
    if not isinstance(task, Arithmetic) or task.config.operand_digits:
        return None
    generator = generators.generator(trained_model.seed, "score", "recurrences", "twice")
    count = trained_model.scoring.num_problems
    drawn = task.draw_shapes(count, generator)
    lengths = torch.where(drawn.lengths_BN > 0, 2 * _longest(trained_model), 0)
    shapes = Shapes(lengths, drawn.operation_B)
    return distinct(draw_from_split(task, shapes, "test", trained_model.split, generator), count)
