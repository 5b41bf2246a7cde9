"""`abacist export`: a trained model in a file or a folder that works without this package."""

import sys
from collections.abc import Callable
from pathlib import Path

from abacist.cli import named_run
from abacist.cli.arguments import Parser
from abacist.errors import RunError, UserError

TARGETS = {
    "html": ".html",
    "torch": ".py",
    "adderboard": ".py",
    "onnx": ".onnx",
    "transformers": "",
}
"""The ending of the file of each target; empty for a target that is a folder."""


def run(arguments: list[str]) -> int:
    """Return exit code 0 if the file or the folder was written."""
    parsed = make_parser().parse(arguments)
    ending = TARGETS[parsed.to]
    _check_target(parsed.out, ending)

    from abacist import files
    from abacist.export import exportable, html, module, onnx, transformers

    writers: dict[str, Callable[[exportable.Exportable], bytes]] = {
        "html": lambda exported: html.page(exported).encode(),
        "torch": lambda exported: module.module(exported).encode(),
        "adderboard": lambda exported: module.submission(exported).encode(),
        "onnx": onnx.model_file,
    }
    if parsed.to == "onnx":
        onnx.check_installed()
    trained = named_run.load(parsed)
    exported = exportable.of_run(trained, parsed.to)
    if ending:
        content = writers[parsed.to](exported)
        files.write_bytes(parsed.out, content)
        size = len(content)
    else:
        contents = transformers.folder(exported)
        files.write_directory(parsed.out, contents)
        size = sum(map(len, contents.values()))
    print(f"{parsed.out} ({size / 1000:,.0f} kB) holds the model of {trained.path}.")
    print(f"Weights: {exported.weights_sha256}")
    print("It is certified." if exported.certificate else f"Not certified: {exported.objection}")
    if exported.extensions:
        print(
            f"The code of {', '.join(exported.extensions)} does not travel: the export holds what the "
            "model computes, and not how problems are written or answers are read."
        )
    return 0


def make_parser() -> Parser:
    """Return the parser of the command's arguments."""
    parser = Parser(
        "export",
        "Write a trained model into a file or folder that works without this package.\n"
        "html: a page that calculates and checks its own proof in any browser, offline.\n"
        "torch: a readable Python file that needs PyTorch only, with a module and solve(problem).\n"
        "adderboard: the same with build_model() and add(model, a, b), as AdderBoard calls them.\n"
        "onnx: a file for any ONNX runtime, ids and coordinates in, logits out, of every recipe.\n"
        "transformers: a folder for AutoModelForCausalLM and AutoTokenizer, with a model card.",
    )
    parser.add_run()
    parser.add_checkpoint()
    parser.add_argument("--to", choices=list(TARGETS), required=True, help="what to write")
    parser.add_argument("--out", metavar="PATH", required=True, type=Path, help="where to write it")
    parser.add_accept_changed_extension()
    return parser


def _check_target(out: Path, ending: str) -> None:
    """Raise `UserError` unless a new file, or a folder if it has no ending, can be written there."""
    if ending and out.suffix != ending:
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
