"""The suite `recurrences`: a looped model, run with more or fewer recurrences than in training."""

from dataclasses import replace

import torch

from abacist import generators
from abacist.data.split import draw_from_split
from abacist.models.transformer import Transformer
from abacist.scoring.judge import Judge
from abacist.scoring.records import Section
from abacist.scoring.samples import as_in_training, distinct
from abacist.scoring.suite import Progress, Suite
from abacist.scoring.trained_model import TrainedModel
from abacist.tasks.arithmetic import Arithmetic
from abacist.tasks.problems import Problems, Shapes

RECURRENCE_COUNTS = (1, 2, 4, 8, 16, 32)
"""Numbers of recurrences to score, besides that of training, unless others are asked for."""


def by_recurrences(trained_model: TrainedModel, on_progress: Progress) -> Section:
    """Score every number of recurrences, on trained lengths and on operands twice as long."""
    trained = trained_model.model.config.recurrences
    counts = sorted({*(trained_model.scoring.recurrences or RECURRENCE_COUNTS), trained})
    longest = _longest(trained_model)
    problems = as_in_training(trained_model, trained_model.scoring.num_problems, "recurrences")
    samples = [("trained lengths", "trained", longest, problems)]
    longer = _twice_as_long(trained_model)
    if longer is not None:
        samples.append((f"{2 * longest} digits", "beyond", 2 * longest, longer))
    total = sum(counts) * sum(len(problems) for *_, problems in samples)
    judge = Judge(trained_model, on_progress, total)
    rows = []
    for sample, kind, digits, problems in samples:
        for count in counts:
            changed = replace(trained_model, model=with_recurrences(trained_model.model, count))
            name = f"{sample}, {count} recurrence{'s' * (count > 1)}"
            name += " (as in training)" * (count == trained)
            work = count * len(problems)
            rows.append(judge.scored_row(name, kind, digits, problems, changed, work))
    return judge.section("Recurrences when tested", rows, trained_recurrences=trained)


def not_looped(trained_model: TrainedModel) -> str | None:
    """Return why a model cannot run with other recurrences than in training; None where it can."""
    if trained_model.model.config.recurrences > 1:
        return None
    return (
        "the model runs its layers once and has no recurrence. "
        "Train with --model.recurrences 8, or score another suite."
    )


RECURRENCES = Suite(
    "a looped model with 1, 2, 4, 8, 16 and 32 recurrences",
    not_looped,
    by_recurrences,
    settings=("num_problems", "recurrences"),
)


def with_recurrences(model: Transformer, count: int) -> Transformer:
    """Return the model with its layers run `count` times; the weights are shared."""
    config = replace(model.config, recurrences=count)
    changed = Transformer(config, model.embedding.num_embeddings)
    changed.load_state_dict(model.state_dict(), assign=True)
    return changed.to(model.device).eval()


def _longest(trained_model: TrainedModel) -> int:
    """Return the number of digits of the longest operand in training; 0 where there is none."""
    task = trained_model.task
    return task.config.longest_operand if isinstance(task, Arithmetic) else 0


def _twice_as_long(trained_model: TrainedModel) -> Problems | None:
    """Draw test problems whose operands are all twice as long as the longest in training.

    The result is None for tasks whose operands have fixed lengths, or none at all.
    """
    task = trained_model.task
    if not isinstance(task, Arithmetic) or task.config.operand_digits:
        return None
    generator = generators.generator(trained_model.seed, "score", "recurrences", "twice")
    count = trained_model.scoring.num_problems
    drawn = task.draw_shapes(count, generator)
    lengths = torch.where(drawn.lengths_BN > 0, 2 * _longest(trained_model), 0)
    shapes = Shapes(lengths, drawn.operation_B)
    return distinct(draw_from_split(task, shapes, "test", trained_model.split, generator), count)
