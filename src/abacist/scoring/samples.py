"""Samples of problems that suites share: of one split, distinct, each suite with its own seed."""

from abacist import generators
from abacist.data.config import SplitName
from abacist.data.split import draw_from_split, hash_problems
from abacist.scoring.trained_model import TrainedModel
from abacist.tasks.problems import Problems, first_occurrences

SHORT_DIGITS = 10
"""Up to here the same problem may well be drawn twice, so a quarter more are drawn and repeats dropped."""


def distinct(problems: Problems, count: int) -> Problems:
    """Up to `count` problems, each once: short operands leave few, and counting one twice would flatter."""
    if problems.digits_BNW.shape[2] > SHORT_DIGITS:
        return problems[:count]
    return problems[first_occurrences(hash_problems(problems, ordered=True))[:count]]


def as_in_training(
    trained_model: TrainedModel, count: int, purpose: str, split: SplitName = "test"
) -> Problems:
    """Up to `count` distinct problems of a split, distributed as those in training."""
    generator = generators.generator(trained_model.seed, "score", purpose, split)
    shapes = trained_model.task.draw_shapes(count + count // 4, generator)
    return distinct(
        draw_from_split(trained_model.task, shapes, split, trained_model.split, generator), count
    )
