"""Train, validation and test as a pure function of the problem.

`a+b` and `b+a` are the same problem here, `a-b` and `b-a` are not. The hash is multilinear: every
(column, digit) has a fixed 64-bit number, an operand is the sum of its digits' numbers, mixed; a
problem is the mixed sum of its operands, each first mixed with its position where that matters,
and of the operation's number. Nothing in it depends on the process, the device, the batch or the
version of a library; a stored list of problems and their splits is a test.
"""

import torch
from torch import Tensor

from abacist.data.config import SplitConfig, SplitName
from abacist.errors import ConfigurationError
from abacist.tasks.problems import OPERATIONS, Problems, Shapes
from abacist.tasks.task import Task

_BUCKETS = 1 << 20
_MAX_ROUNDS = 1_000
_COMMUTATIVE = ("+", "*", "+ mod")


def hash_problems(problems: Problems, ordered: bool = False) -> Tensor:
    """int64 (B,): independent of padding and batch, the same for commuted operands unless `ordered`."""
    digits, lengths = problems.digits_BNW, problems.lengths_BN
    columns = torch.arange(digits.shape[2], device=digits.device)
    table = _mix((columns * 16).unsqueeze(1) + torch.arange(10, device=digits.device) + 1)
    inside = columns < lengths.unsqueeze(-1)
    salts = table[columns.expand_as(inside), digits.long()]
    operands = _mix((salts * inside).sum(dim=-1) + lengths)
    operation = problems.operation_B.long()
    commutes = torch.tensor([o in _COMMUTATIVE for o in OPERATIONS], device=digits.device)
    if ordered or not bool(commutes[operation].all()):
        position = torch.arange(lengths.shape[1], device=digits.device)
        moves = (position > 0) & ~(commutes[operation].unsqueeze(1) & (not ordered))
        operands = torch.where(moves, _mix(operands + position), operands)
    return _mix((operands * (lengths > 0)).sum(dim=-1) + operation)


def in_split(problems: Problems, split: SplitName, config: SplitConfig) -> Tensor:
    """bool (B,): which problems belong to the split; exempted ones belong to all."""
    bucket = (hash_problems(problems) >> 20) & (_BUCKETS - 1)
    test_end = int(config.test_fraction * _BUCKETS)
    validation_end = test_end + int(config.validation_fraction * _BUCKETS)
    if split == "test":
        inside = bucket < test_end
    elif split == "validation":
        inside = (bucket >= test_end) & (bucket < validation_end)
    else:
        inside = bucket >= validation_end
    return inside | is_exempt(problems, config)


def is_exempt(problems: Problems, config: SplitConfig) -> Tensor:
    """bool (B,): which problems are too small to be split."""
    return problems.lengths_BN.amax(dim=1) <= config.exempt_digits


def split_names(problems: Problems, config: SplitConfig) -> list[str]:
    """The split of every problem; `every` for exempted ones."""
    names = ["train"] * len(problems)
    for split in ("validation", "test"):
        for row in in_split(problems, split, config).nonzero().squeeze(1).tolist():
            names[row] = split
    for row in is_exempt(problems, config).nonzero().squeeze(1).tolist():
        names[row] = "every"
    return names


def draw_from_split(
    task: Task,
    shapes: Shapes,
    split: SplitName,
    config: SplitConfig,
    generator: torch.Generator,
) -> Problems:
    """One problem of the split for every shape, uniform among those of its shape.

    Problems of other splits are thrown away and drawn again.
    """
    problems = task.draw(shapes, generator)
    wrong = (~in_split(problems, split, config)).nonzero().squeeze(1)
    digits = problems.digits_BNW
    for _ in range(_MAX_ROUNDS):
        if not len(wrong):
            return Problems(digits, shapes)
        again = task.draw(shapes[wrong], generator)
        digits[wrong, :, : again.digits_BNW.shape[2]] = again.digits_BNW
        wrong = wrong[~in_split(again, split, config)]
    lengths = " and ".join(map(str, shapes.lengths_BN[wrong[0]].tolist()))
    remedy = "smaller --split.test" if split == "train" else f"larger --split.{split}"
    raise ConfigurationError(
        f"no {split} problem with operands of {lengths} digits was found in {_MAX_ROUNDS} draws. "
        f"Try a {remedy}_fraction, or --split.exempt_digits {int(shapes.lengths_BN[wrong[0]].max())}."
    )


def _mix(x: Tensor) -> Tensor:
    """The finaliser of splitmix64 (Steele et al. 2014); int64 products wrap around."""
    x = x + _signed(0x9E3779B97F4A7C15)
    x = (x ^ _shift(x, 30)) * _signed(0xBF58476D1CE4E5B9)
    x = (x ^ _shift(x, 27)) * _signed(0x94D049BB133111EB)
    return x ^ _shift(x, 31)


def _shift(x: Tensor, bits: int) -> Tensor:
    """Logical shift to the right; torch shifts the sign in."""
    return (x >> bits) & ((1 << (64 - bits)) - 1)


def _signed(value: int) -> int:
    return value - (1 << 64) if value >= 1 << 63 else value
