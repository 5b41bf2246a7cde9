"""The choices of a user about a sweep, and the plan that follows from them.

A sweep compares contenders: each named set of settings with each combination of the values in `over`.
Settings in `tuned` make no contenders of their own. Each contender gets their best combination, which is
chosen on validation problems with seeds that are used for nothing else.

>>> choices = Choices(recipe=find("add"), over={"model.width": [16, 32]}, seeds=[0, 1])
>>> [group.name for group in choices.plan().groups]
['width=16', 'width=32']
"""

import itertools
import math
import random
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from abacist.configuration import override
from abacist.errors import ConfigurationError, nearest, number_text
from abacist.recipes.recipe import Recipe
from abacist.sweeps.plan import MOST_TRIALS, Group, Plan, Score, examination_of

_LONGEST_NAME = 100
_DIGITS = 3
"""Number of significant digits of a number that is drawn."""
_MOST_FRUITLESS_DRAWS = 10_000
"""Number of draws in a row without a new combination, after which no further one is expected."""


@dataclass(frozen=True)
class Range:
    """Numbers from which one is drawn; whole numbers if both ends are."""

    low: float
    high: float
    scale: Literal["linear", "log"] = "linear"
    """Whether all numbers are equally likely, or all orders of magnitude."""

    def __post_init__(self) -> None:
        if not self.low < self.high or not (math.isfinite(self.low) and math.isfinite(self.high)):
            raise ConfigurationError(
                f"a range goes from a smaller number to a larger one, got {self}. Try 0.001..0.1."
            )
        if self.scale == "log" and self.low <= 0:
            raise ConfigurationError(
                f"a range on a logarithmic scale begins above 0, got {self}. Try log:0.001..0.1."
            )

    def draw(self, generator: random.Random) -> float:
        """Return a number of the range, with three significant digits unless it is a whole one."""
        if self.scale == "log":
            number = math.exp(generator.uniform(math.log(self.low), math.log(self.high)))
        else:
            number = generator.uniform(self.low, self.high)
        if isinstance(self.low, int) and isinstance(self.high, int):
            return min(self.high, max(self.low, round(number)))
        return min(self.high, max(self.low, float(f"{number:.{_DIGITS}g}")))

    def __str__(self) -> str:
        return f"{'log:' * (self.scale == 'log')}{self.low}..{self.high}"


Values = list[Any] | Range
"""The values of one setting."""


@dataclass(frozen=True, kw_only=True)
class Choices:
    """What a user asks of a sweep."""

    recipe: Recipe
    settings: Mapping[str, Any] = field(default_factory=dict)
    """Changed settings of all trials."""
    contenders: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """Sets of changed settings by name; without any, the recipe itself is the only one."""
    over: Mapping[str, Values] = field(default_factory=dict)
    """Values of settings, all combinations of which are tried."""
    tuned: Sequence[str] = ()
    """Those of the settings in `over` whose best values are chosen for each contender."""
    num_draws: int | None = None
    """Number of different random combinations that are tried instead of all."""
    seeds: Sequence[int] = (0,)
    tuning_seeds: Sequence[int] | None = None
    """Seeds of the trials that tune; None means the one after the largest seed."""
    examination: str | None = None
    score: Score | None = None
    threads: int = 1
    device: str = "auto"

    def plan(self, is_insisted: bool = False) -> Plan:
        """Return the plan.

        Raises `ConfigurationError` for a setting or value that does not exist, for an empty sweep, and,
        unless the user insists, for one of more than `MOST_TRIALS` trials.
        """
        self._check()
        num_groups = self._num_groups()
        num_seeds = max(len(self.seeds), len(self._tuning_seeds))
        if num_groups * num_seeds > MOST_TRIALS and not is_insisted:
            raise ConfigurationError(
                f"the sweep has {num_groups:,} group{'s' * (num_groups > 1)} of settings and "
                f"{num_seeds:,} seed{'s' * (num_seeds > 1)}, which is more than {MOST_TRIALS:,} trials. "
                "Type --yes to train them all, or try fewer values or seeds."
            )
        plan = Plan(
            recipe=override(self.recipe, self.settings),
            groups=self._groups(),
            seeds=list(self.seeds),
            tuning_seeds=self._tuning_seeds,
            examination=self.examination,
            score=self.score,
            threads=self.threads,
            device=self.device,
        )
        for group in plan.groups:
            examination_of(plan.recipe_of(group), plan.examination, plan.score)
        return plan

    @property
    def _tuning_seeds(self) -> list[int]:
        if not self.tuned:
            return []
        if self.tuning_seeds is not None:
            return list(self.tuning_seeds)
        return [max(self.seeds) + 1]

    def check_seeds(self) -> None:
        """Raise `ConfigurationError` if a seed both tunes and is compared."""
        tuning = self._tuning_seeds
        # Without any, the seeds need not be looked at, which may be a range of any length.
        if tuning and (both := set(tuning).intersection(self.seeds)):
            raise ConfigurationError(
                "choose.seeds must differ from the seeds of the sweep, so that no seed is judged by the "
                f"choice it made, got {min(both)} in both. Try [{max(self.seeds) + 1}]."
            )

    def _check(self) -> None:
        self.check_seeds()
        for name, values in self.over.items():
            if isinstance(values, Range) and self.num_draws is None:
                raise ConfigurationError(
                    f"{name} is a range, got {values}, and a sweep of all combinations needs values. "
                    "Type --random 20 to draw from it."
                )
            if values == []:
                raise ConfigurationError(
                    f"{name} has no value, so the sweep has no trial. Try --over {name}=1,2."
                )
            repeated = (
                [v for v in values if values.count(v) > 1] if isinstance(values, list) else []
            )
            if repeated:
                raise ConfigurationError(
                    f"{name} has the value {repeated[0]} twice, and a value is tried once. Leave one out, "
                    "and type --seeds 2 to train more."
                )
        for name in self.tuned:
            if name not in self.over:
                raise ConfigurationError(
                    f"choose.tune names {name!r}, which has no values in over: "
                    f"{nearest(name, self.over)}"
                )
        if self.num_draws is not None:
            if not self.over:
                raise ConfigurationError("--random needs values to draw from. Add --over NAME=1,2.")
            if self.tuned and (others := [name for name in self.over if name not in self.tuned]):
                raise ConfigurationError(
                    f"a random draw is tuned as a whole, got {others[0]} in over and not in "
                    "choose.tune. Add it there, or compare contenders."
                )

    def _num_groups(self) -> int:
        if self.num_draws is not None:
            combinations = self.num_draws
        else:
            combinations = math.prod(len(v) for v in self.over.values() if isinstance(v, list))
        return max(1, len(self.contenders)) * combinations

    def _groups(self) -> list[Group]:
        contenders = self.contenders or {"": {}}
        combinations = [
            (name, settings, compared, tuned)
            for name, settings in contenders.items()
            for compared, tuned in self._combinations()
        ]
        names = _unique_names(
            "group",
            [
                _name(name, {**compared, **tuned}, self.over)
                for name, _, compared, tuned in combinations
            ],
        )
        # Values such as lists cannot be hashed, so a contender is known by their text.
        versions = {
            (name, str(compared)): _name(name, compared, self.over)
            for name, _, compared, _ in combinations
        }
        contender_names = dict(
            zip(versions, _unique_names("contender", list(versions.values())), strict=True)
        )
        return [
            Group(
                name=group_name,
                contender=contender_names[name, str(compared)] or self.recipe.name,
                settings={**settings, **compared, **tuned},
            )
            for group_name, (name, settings, compared, tuned) in zip(
                names, combinations, strict=True
            )
        ]

    def _combinations(self) -> list[tuple[dict[str, Any], dict[str, Any]]]:
        """Return all combinations, or those that are drawn: compared settings and tuned ones."""
        if self.num_draws is None:
            combinations = [
                dict(zip(self.over, values, strict=True))
                for values in itertools.product(*self.over.values())  # type: ignore[arg-type]
            ]
        else:
            combinations = self._drawn_combinations(self.num_draws)
        return [
            (
                {name: value for name, value in combination.items() if name not in self.tuned},
                {name: value for name, value in combination.items() if name in self.tuned},
            )
            for combination in combinations
        ]

    def _drawn_combinations(self, count: int) -> list[dict[str, Any]]:
        """Draw `count` different combinations, the same ones for the same smallest seed."""
        generator = random.Random(f"abacist sweep {min(self.seeds)}")
        # Values such as lists cannot be hashed.
        combinations: dict[str, dict[str, Any]] = {}
        fruitless = 0
        while len(combinations) < count and fruitless < _MOST_FRUITLESS_DRAWS:
            drawn = {name: _draw(values, generator) for name, values in self.over.items()}
            fruitless = fruitless + 1 if str(drawn) in combinations else 0
            combinations[str(drawn)] = drawn
        if len(combinations) < count:
            raise ConfigurationError(
                f"--random {count:,} draws different combinations of {', '.join(self.over)}, and there "
                f"are only about {len(combinations):,}. Try --random {len(combinations)}."
            )
        return list(combinations.values())


def _draw(values: Values, generator: random.Random) -> Any:
    return values.draw(generator) if isinstance(values, Range) else generator.choice(values)


def _name(contender: str, settings: Mapping[str, Any], all_names: Iterable[str]) -> str:
    """Return a name that is safe as a directory, as in `rotary,learning_rate=0.003`; empty if it is too long."""
    short = _short_names(all_names)
    parts = [contender] if contender else []
    parts += [f"{short[name]}={_typed(value)}" for name, value in settings.items()]
    name = ",".join(re.sub(r"[^\w.+=-]", "_", part) for part in parts)
    return name if len(name) <= _LONGEST_NAME else ""


def _short_names(names: Iterable[str]) -> dict[str, str]:
    """Return the shortest end of each dotted name that distinguishes it from the others."""
    names = list(names)
    short = {}
    for name in names:
        parts = name.split(".")
        for count in range(1, len(parts) + 1):
            end = ".".join(parts[-count:])
            if sum(other == end or other.endswith(f".{end}") for other in names) == 1:
                break
        short[name] = end
    return short


def _typed(value: Any) -> str:
    if isinstance(value, list):
        return ",".join(map(_typed, value))
    if isinstance(value, bool):
        return str(value).lower()
    return number_text(value).replace(",", "") if isinstance(value, int) else str(value)


def _unique_names(noun: str, names: list[str]) -> list[str]:
    """Return the names; where there are several, those that are empty or repeated become `noun-0007`."""
    if len(names) == 1:
        return names
    counts = Counter(names)
    return [
        name if name and counts[name] == 1 else f"{noun}-{number:04}"
        for number, name in enumerate(names)
    ]
