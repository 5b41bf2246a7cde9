"""Train, validation and test as a pure function of the problem.

`a+b` and `b+a` count as the same problem, `a-b` and `b-a` do not. The split follows from a hash that
is built in three steps: every pair of column and digit has a fixed 64-bit number; an operand's hash
is the mixed sum of its digits' numbers; a problem's hash is the mixed sum of its operands' hashes and
the operation's number. Where the order of operands matters, each is first mixed with its position.
The hash does not depend on the process, the device, the batch or the version of a library; a test
compares it with a stored list.
"""

import torch
from torch import Tensor

from abacist.data.config import SplitConfig, SplitName
from abacist.errors import ConfigurationError
from abacist.tasks.problems import OPERATIONS, Problems, Shapes
from abacist.tasks.task import Task

_BUCKETS = 1 << 20
_MOST_DRAWS = 1_000
_COMMUTATIVE = ("+", "*", "+ mod")


def hash_problems(problems: Problems, ordered: bool = False) -> Tensor:
    """Return the hash of each problem, int64 (B,), which does not depend on padding or batch.

    Commuted problems have the same hash unless `ordered` is true.
    """
    digits, lengths = problems.digits_BNW, problems.lengths_BN
    columns = torch.arange(digits.shape[2], device=digits.device)
    largest = int(digits.max()) if digits.numel() else 0
    values = torch.arange(max(10, largest + 1), device=digits.device)
    # Digits above 15, in bases above 16, must not get the number of the next column.
    keys = values % 16 + ((values // 16) << 48)
    table = _mix((columns * 16).unsqueeze(1) + keys + 1)
    inside = columns < lengths.unsqueeze(-1)
    salts = table[columns.expand_as(inside), digits.long()]
    operands = _mix((salts * inside).sum(dim=-1) + lengths)
    if problems.negative_BN is not None:
        # Any constant will do that keeps a number and its opposite apart.
        operands = torch.where(problems.negative_BN, _mix(~operands), operands)
    operation = problems.operation_B.long()
    commutes = torch.tensor([o in _COMMUTATIVE for o in OPERATIONS], device=digits.device)
    if ordered or not bool(commutes[operation].all()):
        position = torch.arange(lengths.shape[1], device=digits.device)
        is_ordered = (position > 0) & ~(commutes[operation].unsqueeze(1) & (not ordered))
        operands = torch.where(is_ordered, _mix(operands + position), operands)
    return _mix((operands * (lengths > 0)).sum(dim=-1) + operation)


def in_split(problems: Problems, split: SplitName, config: SplitConfig) -> Tensor:
    """Return which problems belong to the split, bool (B,); exempt ones belong to all splits."""
    bucket = (hash_problems(problems) >> 20) & (_BUCKETS - 1)
    test_end = int(config.test_fraction * _BUCKETS)
    validation_end = test_end + int(config.validation_fraction * _BUCKETS)
    if split == "test" and config.test_fraction:
        inside = bucket < test_end
    elif split != "train":
        inside = (bucket >= test_end) & (bucket < validation_end)
    else:
        inside = bucket >= validation_end
    return inside | is_exempt(problems, config)


def is_exempt(problems: Problems, config: SplitConfig) -> Tensor:
    """Return which problems are too small to be split, bool (B,)."""
    return problems.lengths_BN.amax(dim=1) <= config.exempt_digits


def split_names(problems: Problems, config: SplitConfig) -> list[str]:
    """Return the split of every problem; `every` for exempt ones."""
    names = ["train"] * len(problems)
    for split in config.splits[1:]:
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
    """Draw one problem of the split for every shape, uniformly among those of its shape.

    Problems of other splits are discarded and drawn again.

    Raises:
        ConfigurationError: the split seems to have no problem of one of the shapes.
    """
    problems = task.draw(shapes, generator)
    wrong = (~in_split(problems, split, config)).nonzero().squeeze(1)
    digits, negative = problems.digits_BNW, problems.negative_BN
    for _ in range(_MOST_DRAWS):
        if not len(wrong):
            break
        again = task.draw(shapes[wrong], generator)
        digits[wrong, :, : again.digits_BNW.shape[2]] = again.digits_BNW
        if negative is not None:
            negative[wrong] = again.is_negative_BN
        wrong = wrong[~in_split(again, split, config)]
    if not len(wrong):
        return Problems(digits, shapes, negative)
    lengths = " and ".join(map(str, shapes.lengths_BN[wrong[0]].tolist()))
    remedy = "smaller --split.test" if split == "train" else f"larger --split.{split}"
    raise ConfigurationError(
        f"no {split} problem with operands of {lengths} digits was found in {_MOST_DRAWS} draws. "
        f"Try a {remedy}_fraction, or --split.exempt_digits {int(shapes.lengths_BN[wrong[0]].max())}."
    )


def _mix(x: Tensor) -> Tensor:
    """The finaliser of splitmix64 (Steele et al. 2014); int64 products wrap around."""
    x = x + _signed(0x9E3779B97F4A7C15)
    x = (x ^ _shift(x, 30)) * _signed(0xBF58476D1CE4E5B9)
    x = (x ^ _shift(x, 27)) * _signed(0x94D049BB133111EB)
    return x ^ _shift(x, 31)


def _shift(x: Tensor, bits: int) -> Tensor:
    """Shift to the right and fill up with zeros; torch itself fills up with the sign."""
    return (x >> bits) & ((1 << (64 - bits)) - 1)


def _signed(value: int) -> int:
    """Return the int64 with the same bits as an unsigned 64-bit number."""
    return value - (1 << 64) if value >= 1 << 63 else value
