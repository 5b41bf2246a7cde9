"""The scorecard: the scores of a trained model, with one section per suite."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from abacist.errors import ConfigurationError, nearest
from abacist.scoring import (
    counterexamples,
    exhaustive,
    grid,
    lengths,
    notation,
    probes,
    recurrence_counts,
    splits,
    strata,
)
from abacist.scoring.records import Scorecard
from abacist.scoring.suite import Progress, Suite
from abacist.scoring.trained_model import TrainedModel

SUITES: dict[str, Suite] = {
    "lengths": lengths.LENGTHS,
    "strata": strata.STRATA,
    "splits": splits.SPLITS,
    "probes": probes.PROBES,
    "grid": grid.GRID,
    "recurrences": recurrence_counts.RECURRENCES,
    "notation": notation.NOTATION,
    "exhaustive": exhaustive.EXHAUSTIVE,
    "counterexamples": counterexamples.COUNTEREXAMPLES,
}
"""All suites by name."""

DEFAULT_SUITES = ("lengths",)
"""The suites that score a run unless others are named."""

ALL = "all"
"""Stands for all suites that apply to the model."""


def select_suites(names: Sequence[str], trained_model: TrainedModel) -> list[str]:
    """Return the names of suites without repetition; `all` stands for those that apply to the model.

    Raises `ConfigurationError` where a suite is unknown or does not apply.
    """
    for name in names:
        if name not in SUITES and name != ALL:
            raise ConfigurationError(f"unknown suite {name!r}: {nearest(name, [*SUITES, ALL])}")
    if ALL in names:
        return [name for name, suite in SUITES.items() if suite.obstacle(trained_model) is None]
    for name in names:
        obstacle = SUITES[name].obstacle(trained_model)
        if obstacle is not None:
            raise ConfigurationError(f"the suite {name} does not apply: {obstacle}")
    return list(dict.fromkeys(names))


def check_settings(settings: Mapping[str, Any], suites: Sequence[str]) -> None:
    """Raise `ConfigurationError` if none of the suites follows a setting that replaces the recipe's."""
    for name, value in settings.items():
        following = [suite for suite in SUITES if name in SUITES[suite].settings]
        if following and not {*following, ALL} & {*suites} and {*suites} <= {*SUITES}:
            typed = ",".join(map(str, value)) if isinstance(value, tuple) else value
            raise ConfigurationError(
                f"--{name.replace('_', '-')} {typed} does not apply to --suite {','.join(suites)}. "
                f"Type --suite {' or '.join(following)}, or leave it out."
            )


def score(
    trained_model: TrainedModel,
    suites: Sequence[str] = DEFAULT_SUITES,
    on_progress: Progress | None = None,
    on_section: Callable[[Scorecard], None] | None = None,
) -> Scorecard:
    """Score a model by some suites.

    Args:
        trained_model: the model.
        suites: names of suites, or `all`.
        on_progress: called while a suite runs.
        on_section: called after every suite with the scorecard so far. A suite that Ctrl-C
            interrupts is the last one.

    Raises `ConfigurationError` where a suite is unknown or does not apply to the model.
    """
    ignore: Progress = lambda name, done, total: None  # noqa: E731
    card = Scorecard({}, trained_model.split.exempt_digits)
    for name in select_suites(suites, trained_model):
        card.sections[name] = SUITES[name].run(trained_model, on_progress or ignore)
        if on_section is not None:
            on_section(card)
        if not card.complete:
            break
    return card


def merged(old: Mapping[str, Any], new: Mapping[str, Any]) -> dict[str, Any]:
    """Return a stored scorecard with its sections replaced by those of a new one, as JSON values.

    Raises `ValueError` where the stored one is not a scorecard.
    """
    try:
        sections = {**old["sections"], **new["sections"]}
        errors = sum(int(section["errors"]) for section in sections.values())
    except (KeyError, TypeError) as error:
        raise ValueError("it has no sections with numbers of errors") from error
    return {**new, "sections": sections, "errors": errors}
