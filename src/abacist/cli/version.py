"""`abacist version`: the version of the package."""

from abacist import __version__
from abacist.cli.arguments import Parser


def run(arguments: list[str]) -> int:
    """Return exit code 0."""
    make_parser().parse(arguments)
    print(f"abacist {__version__}")
    return 0


def make_parser() -> Parser:
    """Return the parser of the command's arguments."""
    return Parser("version", "Print the version.")
