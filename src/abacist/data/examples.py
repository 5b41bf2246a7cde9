"""Fixed training problems, through which a training cycles instead of drawing fresh ones forever."""

from dataclasses import dataclass

import torch

from abacist import generators
from abacist.data.config import SplitConfig
from abacist.data.split import draw_from_split, hash_problems, in_split, split_names
from abacist.errors import ConfigurationError, ProblemError
from abacist.tasks.arithmetic import MOST_SHAPES, Arithmetic
from abacist.tasks.problems import Problems, concatenate, first_occurrences
from abacist.tasks.task import Task

_DRAWN_AT_ONCE = 65_536
_MOST_FRUITLESS_DRAWS = 50
_MOST_DIGITS = 100_000
"""Most digits of an operand that a person can type, for tasks without a longest one."""


@dataclass(frozen=True)
class Examples:
    """Which problems are trained on: listed ones, or `count` problems that are drawn once."""

    count: int
    """Number of problems."""
    balanced: bool = False
    """Whether the same number of problems is drawn of each combination of lengths; they may then repeat."""
    listed: tuple[str, ...] = ()
    """The problems as a person types them; if there are none, problems are drawn."""

    def problems(self, task: Task, split: SplitConfig, seed: int) -> Problems:
        """Return the problems, which depend on `seed` if they are drawn.

        Raises:
            ConfigurationError: the training split has too few problems, combinations of lengths
                cannot be listed, or a listed problem is not one to train on.
        """
        if self.listed:
            return listed_problems(task, split, self.listed)
        draw = balanced_problems if self.balanced else first_problems
        return draw(task, split, self.count, seed)

    def sample(self, task: Task, split: SplitConfig, seed: int, count: int) -> Problems:
        """Return at most `count` of the problems: the first ones.

        A balanced set is sorted by length, so its sample is spread evenly over all of it.
        """
        if self.listed:
            return listed_problems(task, split, self.listed[:count])
        if not self.balanced:
            return first_problems(task, split, min(count, self.count), seed)
        problems = balanced_problems(task, split, self.count, seed)
        return problems[:: len(problems) // min(len(problems), count)][:count]


def listed_problems(task: Task, split: SplitConfig, expressions: tuple[str, ...]) -> Problems:
    """Return the problems that a person listed for training.

    Raises:
        ConfigurationError: one of them is not a problem of the task, is longer than the task's
            longest problems, is reserved for validation or test, or is listed twice. Commuted
            problems count as distinct.
    """
    try:
        problems = task.parse(list(expressions), _longest_operand(task))
    except ProblemError as error:
        raise ConfigurationError(f"training.examples: {error}") from error
    names = split_names(problems, split)
    reserved = [i for i, name in enumerate(names) if name not in ("train", "every")]
    if reserved:
        first = reserved[0]
        raise ConfigurationError(
            f"training.examples must be problems of the training split, and {len(reserved):,} of "
            f"{len(names):,} are not; the first is {expressions[first]}, which is reserved for "
            f"{names[first]}. Leave it out."
        )
    new = first_occurrences(hash_problems(problems, ordered=True))
    if len(new) < len(names):
        repeated = min(set(range(len(names))) - set(new.tolist()))
        raise ConfigurationError(
            f"training.examples must be distinct, got {expressions[repeated]} again. Leave it out."
        )
    return problems


def may_be_listed(task: Task, split: SplitConfig, expressions: list[str]) -> list[bool]:
    """Return for each problem of the task whether it is neither too long for training nor reserved."""
    problems = task.parse(expressions)
    is_short = problems.lengths_BN.amax(dim=1) <= _longest_operand(task)
    return (is_short & in_split(problems, "train", split)).tolist()


def _longest_operand(task: Task) -> int:
    """Return the number of digits of the longest operands that are trained on."""
    return task.config.longest_operand if isinstance(task, Arithmetic) else _MOST_DIGITS


def balanced_problems(task: Task, split: SplitConfig, num_problems: int, seed: int) -> Problems:
    """Return training problems, the same number for each operation and combination of lengths.

    Problems are drawn independently of each other, so short ones repeat. Where `num_problems` is
    not a multiple of the number of combinations, some have one problem more.

    Raises:
        ConfigurationError: the combinations of the task cannot be listed.
    """
    shapes = task.every_shape() if isinstance(task, Arithmetic) else None
    if shapes is None:
        raise ConfigurationError(
            "training.balanced_examples needs a task whose combinations of lengths can be listed: "
            f"arithmetic with a fixed number of operands, sampling lengths, and at most {MOST_SHAPES:,} "
            "combinations. "
            "Try --training.balanced_examples false."
        )
    rows = torch.arange(num_problems) * len(shapes) // num_problems
    generator = generators.generator(seed, "examples", "balanced")
    return draw_from_split(task, shapes[rows], "train", split, generator)


def first_problems(task: Task, split: SplitConfig, num_problems: int, seed: int) -> Problems:
    """Return the first `num_problems` distinct problems of the training split, in the order of a seed.

    Commuted problems count as distinct, as in lists of random pairs.

    Raises:
        ConfigurationError: the training split has too few problems.
    """
    parts: list[Problems] = []
    seen = torch.empty(0, dtype=torch.int64)
    fruitless, block = 0, 0
    while len(seen) < num_problems and fruitless < _MOST_FRUITLESS_DRAWS:
        generator = generators.generator(seed, "examples", block)
        shapes = task.draw_shapes(_DRAWN_AT_ONCE, generator)
        problems = draw_from_split(task, shapes, "train", split, generator)
        hashes = hash_problems(problems, ordered=True)
        new = first_occurrences(hashes)
        new = new[~torch.isin(hashes[new], seen)][: num_problems - len(seen)]
        seen = torch.cat([seen, hashes[new]])
        parts.append(problems[new])
        fruitless = 0 if len(new) else fruitless + 1
        block += 1
    if len(seen) < num_problems:
        raise ConfigurationError(
            f"training.num_examples must be at most {len(seen):,}, the number of problems in the "
            f"training split, got {num_problems:,}. Try --training.num_examples none."
        )
    return concatenate(parts)
