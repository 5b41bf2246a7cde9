"""`abacist prove`: certify that a model is right on problems of every length."""

import itertools
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from abacist import files
from abacist.cli import named_run
from abacist.cli.arguments import Parser, whole_number

if TYPE_CHECKING:
    from abacist.certificates.certificate import OnMistake
    from abacist.certificates.record import Certificate
    from abacist.runs.run import Run


def run(arguments: list[str]) -> int:
    """Return exit code 0 if certified, 1 if not."""
    parsed = make_parser().parse(arguments)

    from abacist.certificates import formal
    from abacist.cli import show
    from abacist.reports import terminal

    if parsed.mistakes is not None:
        files.check_writable(parsed.mistakes)
    trained = named_run.load(parsed)
    source = None if parsed.formal is None else formal.weights_source(trained.trained_model())
    mistakes: dict[str, None] = {}
    certificate = proved(
        trained,
        parsed.max_minutes,
        parsed.precision,
        None if parsed.mistakes is None else lambda problem: mistakes.update({problem: None}),
    )
    if parsed.json:
        print(json.dumps(certificate.to_json()))
    else:
        terminal.console().print(show.certificate(certificate), soft_wrap=True)
    if parsed.mistakes is not None:
        saved = _save_mistakes(trained, list(mistakes), parsed.mistakes)
        print(saved, file=sys.stderr if parsed.json else sys.stdout)
    if not certificate.certified:
        return 1
    if source is not None:
        files.make_directory(parsed.formal)
        path = parsed.formal / formal.FILE
        files.write_bytes(path, source.encode())
        if not parsed.json:
            print(f"The weights are in {path}. Next: make formal")
    return 0


def make_parser() -> Parser:
    """Return the parser of the command's arguments."""
    parser = Parser(
        "prove",
        "Check every neighbourhood that a trained model can encounter. The result is a certificate\n"
        "for problems of every length, or a problem with a wrong answer.",
    )
    parser.add_run()
    parser.add_checkpoint()
    parser.add_argument(
        "--max-minutes",
        type=whole_number(1),
        default=60,
        metavar="N",
        help="stop as soon as the check is known to take longer (default: 60)",
    )
    parser.add_argument(
        "--formal",
        type=Path,
        metavar="DIR",
        help="write a certified model's weights into DIR, for the theorem in Coq (formal/README.md)",
    )
    parser.add_argument(
        "--precision",
        choices=["float32", "tf32", "bfloat16"],
        default="float32",
        help="the arithmetic for which the claim shall hold (default: float32)",
    )
    parser.add_argument(
        "--mistakes",
        type=Path,
        metavar="FILE",
        help="write a problem for every wrong neighbourhood into FILE, one a line, except those that are "
        "longer than training problems, or reserved for validation and test; abacist train --examples reads it",
    )
    parser.add_accept_changed_extension()
    parser.add_json()
    return parser


def _save_mistakes(trained: "Run", problems: list[str], path: Path) -> str:
    """Write the problems that may be trained on into `path`, and return what was done."""
    from abacist.data.examples import may_be_listed

    if not problems:
        return f"No neighbourhood is known to be wrong, so {path} is not written."
    is_kept = may_be_listed(trained.task, trained.recipe.split, problems)
    kept = list(itertools.compress(problems, is_kept))
    files.write_bytes(path, "".join(f"{problem}\n" for problem in kept).encode())
    left_out = len(problems) - len(kept)
    return (
        f"Problems with wrong neighbourhoods in {path}: {len(kept):,}. Left out because they are longer "
        f"than training problems, or reserved for validation and test: {left_out:,}."
    )


def proved(
    trained: "Run",
    max_minutes: float = 60,
    precision: str = "float32",
    on_mistake: "OnMistake | None" = None,
) -> "Certificate":
    """Certify a run with progress shown."""
    from abacist.cli.progress import Ticker

    with Ticker("proving", unit="cases") as ticker:
        return trained.prove(max_minutes, ticker.update, precision, on_mistake)
