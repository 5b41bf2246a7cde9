"""Train, validation and test as a pure function of the problem.

`a+b` and `b+a` are the same problem here. The hash is multilinear: every (column, digit) has a
fixed 64-bit number, an operand is the sum of its digits' numbers, mixed; a problem is the mixed
sum of its operands. Nothing in it depends on the process, the device, the batch or the version
of a library; a stored list of problems and their splits is a test.
"""

import torch
from torch import Tensor

from abacist.data.config import SplitConfig, SplitName
from abacist.errors import ConfigurationError
from abacist.tasks.addition import Addition
from abacist.tasks.problems import Problems

_BUCKETS = 1 << 20
_MAX_ROUNDS = 1_000


def hash_problems(problems: Problems) -> Tensor:
    """int64 (B,): the same for commuted operands, independent of padding and batch."""
    digits, lengths = problems.digits_BNW, problems.lengths_BN
    columns = torch.arange(digits.shape[2], device=digits.device)
    table = _mix((columns * 16).unsqueeze(1) + torch.arange(10, device=digits.device) + 1)
    inside = columns < lengths.unsqueeze(-1)
    salts = table[columns.expand_as(inside), digits.long()]
    operands = _mix((salts * inside).sum(dim=-1) + lengths)
    return _mix(operands.sum(dim=-1))


def in_split(problems: Problems, split: SplitName, config: SplitConfig) -> Tensor:
    """bool (B,): which problems belong to the split."""
    bucket = (hash_problems(problems) >> 20) & (_BUCKETS - 1)
    test_end = int(config.test_fraction * _BUCKETS)
    validation_end = test_end + int(config.validation_fraction * _BUCKETS)
    if split == "test":
        return bucket < test_end
    if split == "validation":
        return (bucket >= test_end) & (bucket < validation_end)
    return bucket >= validation_end


def draw_from_split(
    task: Addition,
    lengths_BN: Tensor,
    split: SplitName,
    config: SplitConfig,
    generator: torch.Generator,
) -> Problems:
    """One problem of the split for every row of lengths, uniform among those of its lengths.

    Problems of other splits are thrown away and drawn again.
    """
    problems = task.draw(lengths_BN, generator)
    wrong = (~in_split(problems, split, config)).nonzero().squeeze(1)
    digits = problems.digits_BNW
    for _ in range(_MAX_ROUNDS):
        if not len(wrong):
            return Problems(digits, lengths_BN)
        again = task.draw(lengths_BN[wrong], generator)
        digits[wrong, :, : again.digits_BNW.shape[2]] = again.digits_BNW
        wrong = wrong[~in_split(again, split, config)]
    lengths = " and ".join(map(str, lengths_BN[wrong[0]].tolist()))
    remedy = "smaller --split.test" if split == "train" else f"larger --split.{split}"
    raise ConfigurationError(
        f"no {split} problem with operands of {lengths} digits was found in {_MAX_ROUNDS} draws. "
        f"Try a {remedy}_fraction."
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
