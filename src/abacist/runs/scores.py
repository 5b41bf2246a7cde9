"""The scorecard and the failures of a run, as files in its directory.

Suites are scored at different times. Each replaces its own section and leaves the sections of the
other suites in place, provided that they were scored on the same checkpoint.
"""

import json
import warnings
from typing import Any

from abacist import files
from abacist.runs.directory import RunDirectory
from abacist.scoring.records import Scorecard
from abacist.scoring.scorecard import merged
from abacist.training import checkpoint


class ScorecardFile:
    """The stored scorecard of a run, to which sections are added."""

    def __init__(self, directory: RunDirectory) -> None:
        self.directory = directory
        checkpoints = checkpoint.all_in(directory.checkpoints)
        self.step = checkpoint.read_progress(checkpoints[-1]).step if checkpoints else None
        self._stored = self._read()
        self._stored_failures = self._read_failures() if self._stored else []

    def store(self, card: Scorecard) -> None:
        """Write the stored scorecard with the sections of `card` added or replaced."""
        new = {"step": self.step, **card.to_json()}
        whole = merged(self._stored, new) if self._stored else new
        failures = [f for f in self._stored_failures if f["suite"] not in card.sections]
        failures += card.failures_to_json()
        lines = "".join(json.dumps(failure) + "\n" for failure in failures)
        files.write_bytes(self.directory.failures, lines.encode())
        files.write_json(self.directory.scorecard, whole)

    def _read(self) -> dict[str, Any] | None:
        """Return the stored scorecard; None, with a warning, if no section can be added to it."""
        path = self.directory.scorecard
        if not path.exists():
            return None
        try:
            stored: dict[str, Any] = json.loads(path.read_text())
            merged(stored, {"sections": {}})
            if stored.get("step") != self.step:
                raise ValueError(f"it scores step {stored.get('step')}, not {self.step}")
        except ValueError as error:
            warnings.warn(
                f"{path} is damaged or out of date and is replaced: {error}.", stacklevel=2
            )
            return None
        return stored

    def _read_failures(self) -> list[dict[str, Any]]:
        """Return all whole lines of `failures.jsonl` that name their suite."""
        if not self.directory.failures.exists():
            return []
        failures = []
        for line in self.directory.failures.read_text().splitlines():
            try:
                failure = json.loads(line)
            except ValueError:
                continue
            if isinstance(failure, dict) and "suite" in failure:
                failures.append(failure)
        return failures
