"""Runs on the Hugging Face Hub, named as in `hf://USER/NAME`, or `hf://USER/NAME@REVISION` for one revision.

`abacist push` writes such a repository: a folder `run` with the run, and beside it what transformers loads.
A downloaded run is treated like every run directory: its records and safetensors are read, nothing in
it is executed or unpickled, and the modelling code of the repository is not even downloaded.
"""

import contextlib
import importlib.util
import re
from collections.abc import Iterator
from pathlib import Path

from abacist.errors import RunError, UserError

PREFIX = "hf://"
RUN_FOLDER = "run"
"""Folder of a repository that holds the run."""
_FILES = ["*.json", "*.jsonl", "*.safetensors"]
"""Files of a run that are read."""
_LONGEST_REASON = 200
_NAME = r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*"


def check_repository(name: str) -> None:
    """Raise `UserError` unless `name` looks like USER/NAME."""
    if not re.fullmatch(_NAME, name, re.ASCII):
        raise UserError(
            f"a repository on the Hub is named USER/NAME, got {name!r:.60}. Type your own user name "
            "and a name for the model, such as maria/add."
        )


def download(text: str) -> Path:
    """Return the directory of a run on the Hub, in the cache of huggingface_hub.

    Args:
        text: `hf://USER/NAME`, perhaps with `@REVISION`.

    Raises:
        UserError: the name is not of that form, huggingface_hub is not installed, or it failed.
        RunError: the repository holds no run.
    """
    repository, _, revision = text.removeprefix(PREFIX).partition("@")
    check_repository(repository)
    check_installed()
    from huggingface_hub import snapshot_download

    with one_line_errors(f"cannot download {text}"):
        snapshot = snapshot_download(
            repository,
            revision=revision or None,
            allow_patterns=[f"{RUN_FOLDER}/{pattern}" for pattern in _FILES],
        )
    path = Path(snapshot, RUN_FOLDER)
    if not (path / "run.json").is_file():
        raise RunError(
            f"{text} holds no run of abacist. Type a repository that abacist push has written."
        )
    return path


def check_installed() -> None:
    """Raise `UserError` unless huggingface_hub is installed."""
    if importlib.util.find_spec("huggingface_hub") is None:
        raise UserError(
            "the Hub needs huggingface_hub, which is not installed. "
            'Type pip install --editable ".[hub]" in the clone of abacist.'
        )


@contextlib.contextmanager
def one_line_errors(failure: str) -> Iterator[None]:
    """Turn whatever huggingface_hub raises into a `UserError` of one line that begins with `failure`."""
    try:
        yield
    except Exception as error:
        # Which classes there are depends on the HTTP client of the installed version.
        kind = type(error).__name__
        if kind in ("LocalTokenNotFoundError", "HfHubHTTPError") or re.search(
            r"\b401\b", str(error)
        ):
            advice = "Type hf auth login, and check the name."
        elif kind in ("RepositoryNotFoundError", "RevisionNotFoundError"):
            advice = "Check the name; type hf auth login for a private repository."
        else:
            advice = "Check the connection to the network."
        reason = " ".join(str(error).split())[:_LONGEST_REASON].rstrip(". ") or kind
        raise UserError(f"{failure}: {reason}. {advice}") from error
