"""Running commands in tests."""

from collections.abc import Callable

import pytest

from abacist.cli import main

RunCommand = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> RunCommand:
    """Run a command; gives its exit code, standard output and standard error."""

    def call(*arguments: str) -> tuple[int, str, str]:
        try:
            code = main(list(arguments))
        except SystemExit as exit:
            code = exit.code
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return call
