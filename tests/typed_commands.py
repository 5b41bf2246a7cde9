"""Commands that documents show, read as the command line reads them, without carrying them out."""

import shlex

from abacist.cli import main
from abacist.cli.arguments import Parser, split_off_settings
from abacist.configuration import override
from abacist.inspection.lens import LENSES
from abacist.recipes import find
from abacist.scoring.scorecard import SUITES

_RECIPE_OF = {"train": 0, "recipes": 0, "model": 0, "data": 1}
"""Position of the recipe among the words of a command."""

_PLACEHOLDERS = ("RECIPE", "NAME")


class _Parsed(Exception):
    """A command line has been accepted."""


def check(command: str, monkeypatch) -> None:
    """Fail unless `abacist …` could be typed: its options, suites, lenses, recipe and settings exist."""
    parse = Parser.parse

    def parse_only(parser, *arguments):
        parsed = parse(parser, *arguments)
        for option, names in (("suite", SUITES), ("lens", LENSES)):
            typed = (getattr(parsed, option, None) or "all").split(",")
            assert set(typed) <= {*names, "all", *_PLACEHOLDERS}, command
        raise _Parsed

    words = shlex.split(command)[1:]
    with monkeypatch.context() as patched:
        patched.setattr(Parser, "parse", parse_only)
        try:
            code = main(words)
        except _Parsed:
            code = 0
        except SystemExit as end:  # after --help
            code = end.code
    assert code == 0, command
    changes, others = split_off_settings(_without_extensions(words[1:]))
    position = _RECIPE_OF.get(words[0])
    if position is None or "--resume" in others or len(others) <= position:
        return
    if (name := others[position]) not in (*_PLACEHOLDERS, "--help"):
        override(find(name), changes)


def _without_extensions(words: list[str]) -> list[str]:
    while "--extension" in words:
        position = words.index("--extension")
        words = words[:position] + words[position + 2 :]
    return words
