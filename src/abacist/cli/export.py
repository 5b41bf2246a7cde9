"""`abacist export`: a trained model in a file that works without this package."""

from pathlib import Path

from abacist.cli import named_run
from abacist.cli.arguments import Parser
from abacist.errors import RunError, UserError

TARGETS = {"html": ".html"}
"""The ending of the file of each target."""


def run(arguments: list[str]) -> int:
    """Return exit code 0 if the file was written."""
    parsed = make_parser().parse(arguments)
    _check_target(parsed.out, TARGETS[parsed.to])

    from abacist import files
    from abacist.export import exportable, html

    trained = named_run.load(parsed)
    exported = exportable.of_run(trained, parsed.to)
    content = html.page(exported).encode()
    files.write_bytes(parsed.out, content)
    print(f"{parsed.out} ({len(content) / 1000:,.0f} kB) holds the model of {trained.path}.")
    print(f"Weights: {exported.weights_sha256}")
    print("It is certified." if exported.certificate else f"Not certified: {exported.objection}")
    return 0


def make_parser() -> Parser:
    """Return the parser of the command's arguments."""
    parser = Parser(
        "export",
        "Write a trained model into one file that works without this package.\n"
        "html: a page that calculates and checks its own proof in any browser, offline.",
    )
    parser.add_run()
    parser.add_checkpoint()
    parser.add_argument("--to", choices=list(TARGETS), required=True, help="what to write")
    parser.add_argument("--out", metavar="FILE", required=True, type=Path, help="where to write it")
    parser.add_accept_changed_extension()
    return parser


def _check_target(out: Path, ending: str) -> None:
    """Raise `UserError` unless a new file can be written there."""
    if out.suffix != ending:
        raise UserError(
            f"--out must end with {ending}, got {str(out)!r}. Type --out model{ending}."
        )
    if out.exists():
        raise RunError(f"{out} exists already. Type another --out, or delete it.")
    if not out.parent.is_dir():
        raise RunError(f"{out.parent} is not a directory. Create it, or type another --out.")
