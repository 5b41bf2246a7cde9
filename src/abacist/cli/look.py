"""`abacist look`: look inside a trained model while it reads a problem."""

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING

from abacist.cli.arguments import Parser, whole_number
from abacist.errors import UserError

if TYPE_CHECKING:
    from abacist.inspection.finding import Finding
    from abacist.inspection.inspected_problem import InspectedProblem

_DEFAULT = "next-tokens,attention"
_MOST_PROBLEMS = 100_000


def run(arguments: list[str]) -> int:
    """Exit code 0 when looked, whatever was seen."""
    parser = _parser()
    if "--help" in arguments or "-h" in arguments:
        parser.epilog = _lenses_help()
    # Something like -3+4 is a problem to complain about, not an option.
    signed = [word for word in arguments if re.match(r"-[0-9.(]", word)]
    parsed = parser.parse([word for word in arguments if word not in signed])
    problems = [*parsed.problem, *signed]
    if len(problems) != 1:
        raise UserError(
            f"one problem is looked at, got {len(problems)}. Type abacist look latest 12+34."
        )

    from abacist import files
    from abacist.cli import show, show_lenses
    from abacist.reports.lens_figures import FIGURES
    from abacist.runs.run import load

    trained = load(parsed.run, parsed.device)
    inspected = trained.look(problems[0], parsed.other, parsed.num_problems)
    names = parsed.lens.split(",")
    out = _targets(parsed.out, names)
    found, notes = _looked(inspected, names)
    drawn = []
    for name, target in out.items():
        if name in found:
            files.make_directory(target.parent)
            FIGURES[name](found[name].to_json(), target)
            drawn.append(target)
    if parsed.json:
        told = {name: finding.to_json() for name, finding in found.items()}
        print(json.dumps({"problem": inspected.text, "lenses": told}, allow_nan=False))
        return 0
    console = show.console()
    for name, finding in found.items():
        console.print(show_lenses.shown(name, finding))
    for note in notes:
        console.print(note, style="dim", soft_wrap=True)
    for target in drawn:
        console.print(f"Drawn: {target}", soft_wrap=True)
    return 0


def _looked(
    inspected: "InspectedProblem", names: list[str]
) -> tuple[dict[str, "Finding"], list[str]]:
    """What was seen by lens; of `all`, also why some had no use."""
    from abacist.cli.progress import Ticker
    from abacist.inspection.lens import LENSES, chosen

    lenses = LENSES if names == ["all"] else chosen(names, inspected)
    found: dict[str, Finding] = {}
    notes = []
    with Ticker("looking") as ticker:
        for number, (name, lens) in enumerate(lenses.items()):
            ticker.update(number, len(lenses), name)
            obstacle = lens.obstacle(inspected)
            try:
                if obstacle is None:
                    found[name] = lens.look(inspected)
            except UserError as error:
                if names != ["all"]:
                    raise
                obstacle = str(error)
            if obstacle is not None:
                notes.append(f"{name}: {obstacle}")
    return found, notes


def _targets(out: str | None, names: list[str]) -> dict[str, Path]:
    """Where the picture of each lens goes: one file for one lens, or a directory."""
    from abacist.inspection.lens import LENSES
    from abacist.reports.figures import ENDINGS

    if out is None:
        return {}
    path = Path(out)
    if path.suffix in ENDINGS and not path.is_dir():
        if len(names) > 1 or names == ["all"]:
            raise UserError(
                f"--out {out} holds the picture of one lens, and {','.join(names)} are several. "
                f"Try --out {path.with_suffix('')}, a directory."
            )
        return {names[0]: path}
    if path.suffix and not path.is_dir():
        raise UserError(
            f"--out must be a directory, a .png or a .svg file, got {out}. "
            f"Try --out {path.with_suffix('.svg')}."
        )
    return {name: path / f"{name}.png" for name in (LENSES if names == ["all"] else names)}


def _parser() -> Parser:
    parser = Parser("look", "Look inside a trained model while it reads a problem.")
    parser.add_run()
    parser.add_device()
    parser.add_argument("problem", nargs="*", metavar="PROBLEM", help="such as 12+34")
    parser.add_argument(
        "--lens",
        default=_DEFAULT,
        metavar="NAME[,NAME…]",
        help=f"what to look through, or all (default: {_DEFAULT}); the names are below",
    )
    parser.add_argument(
        "--with",
        dest="other",
        metavar="PROBLEM",
        help="patching: the problem whose activations are put in (default: one is made that "
        "differs in one carry)",
    )
    parser.add_argument(
        "--num-problems",
        type=whole_number(4, _MOST_PROBLEMS),
        default=200,
        metavar="N",
        help="test problems that averages, ablations and probes are made of (default: 200)",
    )
    parser.add_argument(
        "--out",
        metavar="FILE|DIR",
        help="draw a picture: a .png or .svg file for one lens, or a directory for all",
    )
    parser.add_json()
    return parser


def _lenses_help() -> str:
    from abacist.inspection.lens import LENSES

    lines = [f"  {name:16}{lens.summary}" for name, lens in LENSES.items()]
    return "\n".join(["lenses:", *lines])
