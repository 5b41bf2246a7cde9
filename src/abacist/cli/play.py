"""`abacist play`: a web page on this machine on which trained models calculate and can be inspected."""

import importlib.util
import warnings
from pathlib import Path

from abacist.cli import named_run
from abacist.cli.arguments import Parser, whole_number
from abacist.errors import UserError


def run(arguments: list[str]) -> int:
    """Return exit code 0 after the page was closed, or the folder was written."""
    parsed = make_parser().parse(arguments)
    if importlib.util.find_spec("gradio") is None:
        raise UserError(
            "the page needs gradio, which is not installed. "
            'Type pip install --editable ".[app]" in the clone of abacist.'
        )
    names = [str(named_run.find(name).path) for name in parsed.runs or ["latest"]]
    if parsed.share_space is not None:
        from abacist.app.space import write_space

        written = write_space(names, Path(parsed.share_space))
        print(f"Space: {written}. Push this folder to a Space on Hugging Face.")
        return 0

    # Gradio leaves resources open, which users of the page cannot change.
    warnings.simplefilter("ignore", ResourceWarning)
    from abacist.app import page
    from abacist.app.shown_runs import open_gallery

    gallery = open_gallery(names, parsed.device)
    with page.served(gallery, parsed.host, parsed.port, parsed.open) as address:
        print(f"Page: {address}  (Ctrl-C ends it)", flush=True)
        page.wait()
    return 0


def make_parser() -> Parser:
    """Return the parser of the command's arguments."""
    parser = Parser(
        "play",
        "Open a web page on this machine: type a problem, watch the digits appear, see what every head\n"
        "looks at, and switch heads off. The page needs no network.",
    )
    parser.add_argument(
        "runs",
        nargs="*",
        metavar="RUN",
        help="run directories, shown side by side (default: latest, the newest run)",
    )
    parser.add_device()
    parser.add_argument(
        "--host",
        default="127.0.0.1",
        metavar="ADDRESS",
        help="default: 127.0.0.1, this machine only; 0.0.0.0 admits everyone who can reach it",
    )
    parser.add_argument(
        "--port",
        type=whole_number(1, 65_535),
        metavar="N",
        help="default: the first free port from 7860 on",
    )
    parser.add_argument("--open", action="store_true", help="open the page in a browser")
    parser.add_argument(
        "--share-space",
        metavar="DIR",
        help="write a folder that can be pushed as a Space of Hugging Face; open no page",
    )
    return parser
