"""`abacist play`: a page on this machine where trained models calculate and can be looked into."""

import importlib.util
import warnings
from pathlib import Path

from abacist.cli.arguments import Parser, whole_number
from abacist.errors import UserError


def run(arguments: list[str]) -> int:
    """Exit code 0 when the page was shown and ended, or the folder written."""
    parser = _parser()
    parsed = parser.parse(arguments)
    if importlib.util.find_spec("gradio") is None:
        raise UserError('the page needs gradio. Type pip install "abacist[app]".')
    if parsed.share_space is not None:
        from abacist.app.space import write_space

        written = write_space(parsed.runs or ["latest"], Path(parsed.share_space))
        print(f"Space: {written}. Push this folder to a Space of Hugging Face.")
        return 0

    # Gradio leaves some behind, about which nobody who plays can do anything.
    warnings.simplefilter("ignore", ResourceWarning)
    from abacist.app import page
    from abacist.app.shown_runs import open_gallery

    gallery = open_gallery(parsed.runs, parsed.device)
    with page.served(gallery, parsed.host, parsed.port, parsed.open) as address:
        print(f"Page: {address}  (Ctrl-C ends it)", flush=True)
        page.wait()
    return 0


def _parser() -> Parser:
    parser = Parser(
        "play",
        "Open a page on this machine: type a problem, watch the digits appear, see what every head\n"
        "looks at, switch heads off. It needs no network.",
    )
    parser.add_argument(
        "runs",
        nargs="*",
        metavar="RUN",
        help="run directories, shown side by side; latest, the newest one, where none is given",
    )
    parser.add_device()
    parser.add_argument(
        "--host",
        default="127.0.0.1",
        metavar="ADDRESS",
        help="default: 127.0.0.1, this machine only; 0.0.0.0 lets everyone in who can reach it",
    )
    parser.add_argument(
        "--port",
        type=whole_number(1, 65_535),
        metavar="N",
        help="default: the first free one from 7860 on",
    )
    parser.add_argument("--open", action="store_true", help="open the page in a browser")
    parser.add_argument(
        "--share-space",
        metavar="DIR",
        help="write a folder that is ready to be a Space of Hugging Face, and open nothing",
    )
    return parser
