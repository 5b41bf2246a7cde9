"""Scorecards and failures of a run, in its directory.

Suites are scored at different times, so each puts its section in beside those of the others, as
long as they speak of the same checkpoint.
"""

import json
import warnings
from typing import Any

from abacist import files
from abacist.errors import RunError
from abacist.runs.directory import RunDirectory
from abacist.scoring.scorecard import Scorecard, merged
from abacist.training import checkpoint


class Keeper:
    """Keeps the scorecard of a run up to date."""

    def __init__(self, directory: RunDirectory) -> None:
        self.directory = directory
        newest = checkpoint.all_in(directory.checkpoints)
        self.step = checkpoint.read_progress(newest[-1]).step if newest else None
        self._old = self._stored()
        self._old_failures = self._stored_failures() if self._old else []

    def store(self, card: Scorecard) -> None:
        """Put the sections of `card` into what is stored."""
        new = {"step": self.step, **card.to_json()}
        whole = merged(self._old, new) if self._old else new
        failures = [kept for kept in self._old_failures if kept["suite"] not in card.sections]
        failures += card.failures_to_json()
        lines = "".join(json.dumps(failure) + "\n" for failure in failures)
        files.write_bytes(self.directory.failures, lines.encode())
        files.write_json(self.directory.scorecard, whole)

    def _stored(self) -> dict[str, Any] | None:
        """The scorecard there is; None, with a warning, where nothing can be added to it."""
        path = self.directory.scorecard
        if not path.exists():
            return None
        try:
            old: dict[str, Any] = json.loads(path.read_text())
            merged(old, {"sections": {}})
            if old.get("step") != self.step:
                raise ValueError(f"it speaks of step {old.get('step')}, not {self.step}")
        except ValueError as error:
            warnings.warn(f"{path} is damaged or older and is replaced: {error}.", stacklevel=2)
            return None
        return old

    def _stored_failures(self) -> list[dict[str, Any]]:
        """All whole lines of `failures.jsonl` that name their suite."""
        if not self.directory.failures.exists():
            return []
        found = []
        for line in self.directory.failures.read_text().splitlines():
            try:
                record = json.loads(line)
            except ValueError:
                continue
            if isinstance(record, dict) and "suite" in record:
                found.append(record)
        return found


def read_scorecard(directory: RunDirectory) -> dict[str, Any]:
    """The stored scorecard. Raises `RunError` where a run was never scored, or it is damaged."""
    remedy = f"Type abacist score {directory.path}."
    if not directory.scorecard.exists():
        raise RunError(f"{directory.path} was never scored. {remedy}")
    try:
        card: dict[str, Any] = json.loads(directory.scorecard.read_text())
        return merged(card, {**card, "sections": {}})
    except ValueError as error:
        raise RunError(f"{directory.scorecard} is damaged or older: {error}. {remedy}") from error
