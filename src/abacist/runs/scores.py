"""The scorecard and the failures of a run, as files in its directory.

Suites are scored at different times. Each replaces its own section and leaves the sections of the
other suites in place, provided that they scored the same model. The file is read anew each time, and
locked from reading to writing, since another process may score another suite meanwhile. A section of
more problems is never replaced by one of fewer; a warning says which is kept.
"""

import json
import warnings
from dataclasses import replace
from typing import Any

from abacist import files
from abacist.configuration import from_json
from abacist.runs import identity
from abacist.runs.directory import RunDirectory
from abacist.runs.identity import Identity
from abacist.scoring.records import Scorecard, Section
from abacist.scoring.scorecard import merged


class ScorecardFile:
    """The stored scorecard of a run, to which sections are added."""

    def __init__(self, directory: RunDirectory, step: int, model: Identity) -> None:
        """Prepare to store sections.

        Args:
            directory: the directory of the run.
            step: the training step of the model that is scored.
            model: identity of that model.
        """
        self.directory, self.step, self.model = directory, step, model
        self._announced: set[str] = set()

    def store(self, card: Scorecard) -> None:
        """Write the stored scorecard with the sections of `card` added or replaced.

        Waits while another process writes it.
        """
        # The run's own directory is locked for the whole of a training.
        checkpoints = self.directory.checkpoints
        directory = checkpoints if checkpoints.is_dir() else self.directory.path
        with files.locked(directory, wait=True):
            self._store(card)

    def _store(self, card: Scorecard) -> None:
        stored = self._read()
        larger = {name for name in card.sections if self._has_more_problems(name, card, stored)}
        replaced = {name: s for name, s in card.sections.items() if name not in larger}
        added = replace(card, sections=replaced)
        new = {"step": self.step, **self.model.to_json(), **identity.package(), **added.to_json()}
        whole = merged(stored, new) if stored else new
        with files.not_saved_as_warning("The scorecard"):
            stored_failures = self._read_failures() if stored else []
            failures = [f for f in stored_failures if f["suite"] not in replaced]
            failures += [failure | self.model.to_json() for failure in added.failures_to_json()]
            lines = "".join(json.dumps(failure) + "\n" for failure in failures)
            files.make_directory(self.directory.results_path)
            files.write_bytes(self.directory.failures, lines.encode())
            files.write_json(self.directory.scorecard, whole)

    def _has_more_problems(self, name: str, card: Scorecard, stored: dict[str, Any] | None) -> bool:
        """Whether the stored section of a suite is complete and larger; says so once."""
        if stored is None or name not in stored["sections"]:
            return False
        try:
            section: Section = from_json(Section, stored["sections"][name], name)
        except (ValueError, KeyError, TypeError):
            return False
        stored_size, size = section.num_problems, card.sections[name].num_problems
        if not section.complete or stored_size <= size:
            return False
        if name not in self._announced:
            self._announced.add(name)
            warnings.warn(
                f"{self.directory.scorecard} keeps the section {name} of {stored_size:,} problems; "
                f"the one of {size:,} is not stored.",
                stacklevel=4,
            )
        return True

    def _read(self) -> dict[str, Any] | None:
        """Return the stored scorecard; None, with a warning, if no section can be added to it."""
        path = self.directory.scorecard
        if not path.exists():
            return None
        try:
            stored: dict[str, Any] = files.parse_json(path.read_bytes())
            merged(stored, {"sections": {}})
            objection = self.model.objection(stored)
            if objection is not None:
                raise ValueError(f"it speaks of {objection}")
        except (ValueError, OSError) as error:
            warnings.warn(
                f"{path} is damaged or out of date and is replaced: {error}.", stacklevel=2
            )
            return None
        return stored

    def _read_failures(self) -> list[dict[str, Any]]:
        """Return all whole lines of `failures.jsonl` that name their suite and speak of this model.

        Raises `RunError` if the file cannot be read.
        """
        path = self.directory.failures
        with files.os_errors_as_run_errors("read", path):
            lines = path.read_bytes().splitlines() if path.exists() else []
        failures = []
        for line in lines:
            try:
                failure = files.parse_json(line)
            except ValueError:
                continue
            is_failure = isinstance(failure, dict) and isinstance(failure.get("suite"), str)
            if is_failure and self.model.objection(failure) is None:
                failures.append(failure)
        return failures
