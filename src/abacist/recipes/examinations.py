"""What the committed record of each recipe examines. Imports no torch.

`runs/examination.py` carries an examination out, and `python benchmarks/records.py` writes its outcome
to `results/RECIPE.json`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal

from abacist.errors import ConfigurationError, nearest


@dataclass(frozen=True)
class ArithmeticSample:
    """Test problems with operands of stated lengths, which no suite asks."""

    operation: str
    digits: tuple[int, int]
    """Number of digits of the first and of the second operand."""
    n: int = 10_000
    """Number of problems."""
    sampling: Literal["lengths", "nines", "carry-chains"] = "lengths"
    """As the task's setting; with `carry-chains`, every column of a sum carries into the next one."""

    @property
    def name(self) -> str:
        """Name of the row. The random problems depend on it."""
        suffix = {
            "lengths": "",
            "nines": ", half of them rich in nines",
            "carry-chains": ", a carry through every digit",
        }[self.sampling]
        return f"{self.digits[0]} {self.operation} {self.digits[1]} digits{suffix}"


@dataclass(frozen=True)
class SortingSample:
    """Test problems of sorting with stated counts and lengths of numbers."""

    numbers: tuple[int, int]
    """Smallest and largest count of numbers; each count is equally likely."""
    digits: tuple[int, int]
    """Number of digits of the shortest and of the longest number."""
    n: int = 10_000
    """Number of problems."""

    @property
    def name(self) -> str:
        """Name of the row. The random problems depend on it."""
        counts, lengths = (
            f"{low:,}" if low == high else f"{low:,}–{high:,}"
            for low, high in (self.numbers, self.digits)
        )
        return f"{counts} numbers of {lengths} digits"


Sample = ArithmeticSample | SortingSample


@dataclass(frozen=True, kw_only=True)
class Examination:
    """What a trained model is asked, and whether it is to be proved right."""

    suites: Mapping[str, Mapping[str, int]]
    """Suites of `abacist score`, each with the settings of `scoring` that it replaces."""
    samples: tuple[Sample, ...] = ()
    """Problems beyond those of the suites."""
    proved: bool = False
    """Whether every neighbourhood is checked."""
    headlines: tuple[str, ...] = ()
    """Names of the rows that stand for all rows in the README."""


DEFAULT = Examination(suites={"lengths": {}}, proved=True)
"""The examination of a run that is not made for a record, as after `abacist train`."""

LENGTHS = Examination(
    suites={"lengths": {}, "probes": {}},
    proved=True,
    headlines=("≤ 10 digits, all pairs", "100 digits", "1,000 digits, unequal", "10,000 digits"),
)
THREE_DIGIT = Examination(suites={"exhaustive": {}, "probes": {}}, headlines=("all problems",))
PARALLEL_ENCODER = Examination(
    suites={"strata": {}, "lengths": {"longest": 20}, "probes": {}},
    headlines=(
        "as in training",
        "all answer tokens",
        "single digits, 0+0 to 9+9",
        "21–30 digits, random",
    ),
)
PUBLISHED_LOOPED = Examination(
    suites={
        "grid": {"grid_size": 40, "grid_problems": 100},
        "recurrences": {"num_problems": 1_000},
        "probes": {},
    },
    headlines=(
        *("both ≤ 10 digits", "both > 10 digits", "both ≤ 20 digits", "both > 20 digits"),
        "trained lengths, 1 recurrence",
        *(f"trained lengths, {count} recurrences" for count in (2, 16, 32)),
        "trained lengths, 8 recurrences (as in training)",
    ),
)

CALCULATOR = Examination(
    suites={"lengths": {"longest": 12}, "probes": {}},
    samples=(
        ArithmeticSample("+", (100, 100), 1_000),
        ArithmeticSample("+", (100, 100), 1_000, "nines"),
        ArithmeticSample("-", (100, 100), 1_000),
        ArithmeticSample("-", (100, 100), 1_000, "nines"),
        ArithmeticSample("*", (7, 7), 2_000),
        ArithmeticSample("*", (20, 20), 1_000),
        ArithmeticSample("*", (20, 20), 500, "nines"),
        ArithmeticSample("//", (12, 6), 2_000),
        ArithmeticSample("%", (12, 6), 2_000),
        ArithmeticSample("//", (20, 10), 500),
        ArithmeticSample("%", (20, 10), 500, "nines"),
        ArithmeticSample("//", (40, 20), 100),
    ),
    proved=True,
    headlines=("100 + 100 digits", "100 - 100 digits", "20 * 20 digits", "20 // 10 digits"),
)
EXAMINATIONS: dict[str, Examination] = {
    "add": replace(
        LENGTHS,
        suites={**LENGTHS.suites, "grid": {"grid_size": 40}},
        headlines=(*LENGTHS.headlines, "all cells"),
    ),
    "add-tiny": replace(LENGTHS, headlines=("≤ 5 digits, all pairs", *LENGTHS.headlines[1:])),
    "add-tiny-relu": replace(LENGTHS, headlines=("≤ 5 digits, all pairs", *LENGTHS.headlines[1:])),
    "add-many": replace(LENGTHS, headlines=("≤ 5 digits, all pairs", "20 digits")),
    "subtract": LENGTHS,
    "multiply": Examination(
        suites={"lengths": {"longest": 7}, "probes": {}},
        samples=(
            ArithmeticSample("*", (7, 7)),
            ArithmeticSample("*", (20, 20)),
            ArithmeticSample("*", (20, 3)),
            ArithmeticSample("*", (3, 20)),
            ArithmeticSample("*", (20, 20), 1_000, "nines"),
            ArithmeticSample("*", (50, 50), 100),
            ArithmeticSample("*", (100, 100), 4),
        ),
        proved=True,
        headlines=("7 * 7 digits", "20 * 20 digits", "50 * 50 digits"),
    ),
    "divide": Examination(
        suites={"lengths": {"longest": 12}, "probes": {}},
        samples=(
            ArithmeticSample("//", (12, 6), 2_000),
            ArithmeticSample("%", (12, 6), 2_000),
            # These take an even number of steps, those above an odd one.
            ArithmeticSample("//", (13, 6), 1_000),
            ArithmeticSample("%", (13, 6), 1_000),
            ArithmeticSample("//", (12, 1), 1_000),
            ArithmeticSample("//", (20, 10), 500),
            ArithmeticSample("%", (20, 10), 500),
            ArithmeticSample("//", (20, 10), 500, "nines"),
            ArithmeticSample("//", (40, 20), 100),
            ArithmeticSample("//", (100, 50), 4),
        ),
        proved=True,
        headlines=("12 // 6 digits", "12 % 6 digits", "20 // 10 digits", "40 // 20 digits"),
    ),
    "modulo": Examination(
        suites={"lengths": {"longest": 12}, "probes": {}},
        samples=(
            ArithmeticSample("%", (12, 6), 2_000),
            ArithmeticSample("%", (13, 6), 1_000),
            ArithmeticSample("%", (20, 10), 500),
            ArithmeticSample("%", (20, 10), 500, "nines"),
            ArithmeticSample("%", (40, 20), 100),
            ArithmeticSample("%", (100, 50), 4),
        ),
        proved=True,
        headlines=("12 % 6 digits", "20 % 10 digits", "40 % 20 digits"),
    ),
    "calculator": CALCULATOR,
    "signed-calculator": CALCULATOR,
    "sort": Examination(
        suites={"strata": {"num_problems": 100}, "probes": {}},
        samples=(
            SortingSample((2, 10), (1, 10)),
            SortingSample((10, 10), (10, 10), 1_000),
            SortingSample((30, 30), (30, 30), 1_000),
            SortingSample((52, 52), (1, 3), 200),
            SortingSample((52, 52), (52, 52), 100),
            SortingSample((10, 10), (1_000, 1_000), 100),
        ),
        proved=True,
        headlines=(
            "2–10 numbers of 1–10 digits",
            "30 numbers of 30 digits",
            "52 numbers of 1–3 digits",
            "10 numbers of 1,000 digits",
        ),
    ),
    "three-digit": THREE_DIGIT,
    "three-digit-grokking": THREE_DIGIT,
    "spaced": Examination(
        suites={"notation": {"num_problems": 10_000}, "probes": {}},
        headlines=("around", "none", "thousands", "random"),
    ),
    "spaced-gpt2": Examination(
        suites={"notation": {"num_problems": 10_000}, "splits": {}, "probes": {}},
        headlines=("around", "none", "thousands", "random"),
    ),
    "parallel": Examination(
        suites={"strata": {}, "lengths": {"longest": 20}, "probes": {}},
        samples=(ArithmeticSample("+", (20, 20)), ArithmeticSample("+", (30, 30))),
        headlines=(
            "20 + 20 digits",
            "30 + 30 digits",
            "single digits, 0+0 to 9+9",
            "a+b and b+a answered alike",
        ),
    ),
    "parallel-encoder": PARALLEL_ENCODER,
    "parallel-encoder-torch": PARALLEL_ENCODER,
    "five-operations": Examination(
        suites={"exhaustive": {}},
        headlines=(
            "all problems",
            "operation +",
            "operation -",
            "operation *",
            "operation //",
            "operation %",
        ),
    ),
    "five-operations-10m": Examination(suites={"exhaustive": {}}, headlines=("all problems",)),
    "looped-abacus-small": PUBLISHED_LOOPED,
    "looped-abacus-post": PUBLISHED_LOOPED,
    "looped-abacus-1x16": PUBLISHED_LOOPED,
    "looped-abacus-8x2": PUBLISHED_LOOPED,
    "looped-abacus-16x1": PUBLISHED_LOOPED,
}
"""The examination of every recipe with a record, by the name of the recipe."""


def find(name: str | None) -> Examination:
    """Return the examination of a recipe by its name; without a name, `DEFAULT`.

    Raises `ConfigurationError` if the recipe has none.
    """
    if name is None:
        return DEFAULT
    if name not in EXAMINATIONS:
        raise ConfigurationError(f"no examination for {name!r}: {nearest(name, EXAMINATIONS)}")
    return EXAMINATIONS[name]
