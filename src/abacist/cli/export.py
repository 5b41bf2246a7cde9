"""`abacist export`: a trained model in a file that works without this package."""

import sys
from pathlib import Path

from abacist.cli import named_run
from abacist.cli.arguments import Parser
from abacist.errors import RunError, UserError

TARGETS = {"html": ".html", "torch": ".py", "adderboard": ".py"}
"""The ending of the file of each target."""


def run(arguments: list[str]) -> int:
    """Return exit code 0 if the file was written."""
    parsed = make_parser().parse(arguments)
    _check_target(parsed.out, TARGETS[parsed.to])

    from abacist import files
    from abacist.export import exportable, html, module

    writers = {"html": html.page, "torch": module.module, "adderboard": module.submission}
    trained = named_run.load(parsed)
    exported = exportable.of_run(trained, parsed.to)
    content = writers[parsed.to](exported).encode()
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
        "html: a page that calculates and checks its own proof in any browser, offline.\n"
        "torch: a readable Python file that needs PyTorch only, with a module and solve(problem).\n"
        "adderboard: the same with build_model() and add(model, a, b), as AdderBoard calls them.",
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
    if ending == ".py" and out.stem in {"torch", *sys.stdlib_module_names}:
        raise UserError(
            f"--out must not have the name of a module that Python imports, got {str(out)!r}. "
            "Type --out model.py."
        )
    if out.exists():
        raise RunError(f"{out} exists already. Type another --out, or delete it.")
    if not out.parent.is_dir():
        raise RunError(f"{out.parent} is not a directory. Create it, or type another --out.")
