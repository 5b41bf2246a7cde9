"""The run that a command is about: its directory, its model, and what is said about the choice.

`latest`, `hf://USER/NAME` and `--checkpoint` choose something that the user has not named in full, so standard error
says what was taken.
"""

import argparse
import re
from pathlib import Path
from typing import TYPE_CHECKING

from abacist.cli import streams
from abacist.errors import RunError
from abacist.runs import directory
from abacist.runs.directory import PLAN, RunDirectory
from abacist.runs.hub import PREFIX

if TYPE_CHECKING:
    from abacist.runs.run import Run


def find(name: str, checkpoint: str = "last") -> RunDirectory:
    """Return the directory of a run, and say which run `latest` is.

    Raises `RunError` as `directory.find` does.
    """
    is_on_hub = name.startswith(PREFIX)
    if re.search(r"\d\s*[-+*/%,]", name) and not is_on_hub and not Path(name).exists():
        raise RunError(
            f"there is no run {name}. If that is a problem, type a run before it: "
            "a directory, or latest for the newest."
        )
    run = directory.find(name, checkpoint)
    if run.path != Path(name):
        streams.note(f"{name} is {run.path}")
    if checkpoint != "last" and run.checkpoint is not None:
        kind = " (best on validation)" if checkpoint == "best" else ""
        newest = "" if run.chosen else ", the newest"
        streams.note(f"checkpoint: {run.checkpoint.name}{kind}{newest}")
    return run


def is_group(name: str) -> bool:
    """Whether a directory holds the runs of many seeds or of a sweep."""
    return (Path(name) / PLAN).is_file()


def load(parsed: argparse.Namespace, device: str = "cpu") -> "Run":
    """Load the run and the checkpoint that were named, and say which run `latest` is."""
    run = find(parsed.run, parsed.checkpoint)

    from abacist.runs.run import load

    accept = getattr(parsed, "accept_changed_extension", True)
    return load(run.path, device, checkpoint=parsed.checkpoint, accept_changed_extension=accept)
