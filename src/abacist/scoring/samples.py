"""Samples of problems that several suites use: of one split, distinct, with a seed per suite."""

from abacist import generators
from abacist.data.config import SplitName
from abacist.data.split import draw_from_split, hash_problems
from abacist.scoring.trained_model import TrainedModel
from abacist.tasks.problems import Problems, first_occurrences

SHORT_DIGITS = 10
"""Up to this length a problem may well be drawn twice, so repeats are dropped and a quarter more are drawn."""


def distinct(problems: Problems, count: int) -> Problems:
    """Return the first `count` distinct problems, or all where there are fewer.

    Counting a problem twice would flatter the score. Operands of more than 10 digits are not
    compared, since repeats are so unlikely.
    """
    if problems.digits_BNW.shape[2] > SHORT_DIGITS:
        return problems[:count]
    return problems[first_occurrences(hash_problems(problems, ordered=True))[:count]]


def as_in_training(
    trained_model: TrainedModel, count: int, purpose: str, split: SplitName = "test"
) -> Problems:
    """Draw up to `count` distinct problems of a split, distributed as in training.

    `purpose` names the sample: each purpose has random numbers of its own.
    """
    generator = generators.generator(trained_model.seed, "score", purpose, split)
    shapes = trained_model.task.draw_shapes(count + count // 4, generator)
    return distinct(
        draw_from_split(trained_model.task, shapes, split, trained_model.split, generator), count
    )
