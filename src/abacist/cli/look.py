"""`abacist look`: look inside a trained model while it reads a problem."""

import json
from pathlib import Path
from typing import TYPE_CHECKING

from abacist.cli import named_run
from abacist.cli.arguments import Parser, whole_number
from abacist.errors import UserError

if TYPE_CHECKING:
    from abacist.inspection.finding import Finding
    from abacist.inspection.inspected_problem import InspectedProblem

_DEFAULT = "next-tokens,attention"
_MOST_PROBLEMS = 100_000


def run(arguments: list[str]) -> int:
    """Return exit code 0, whatever the lenses show."""
    parser = make_parser()
    if "--help" in arguments or "-h" in arguments:
        parser.epilog = _lenses_help()
    parsed = parser.parse(arguments)
    if len(parsed.problem) != 1:
        raise UserError(
            f"abacist look takes one problem, got {len(parsed.problem)}. "
            "Type abacist look latest 12+34."
        )

    from rich.text import Text

    from abacist import files
    from abacist.inspection.lens import ALL, LENSES
    from abacist.reports import csv_records, lens_views, matplotlib_figures, terminal

    names = parsed.lens.split(",")
    if ALL in names:
        names = [ALL]
    if parsed.other is not None and not {"patching", ALL} & set(names):
        raise UserError(
            f"--with is the second problem of the lens patching, and the lenses are {parsed.lens}. "
            "Try --lens patching."
        )
    trained = named_run.load(parsed, parsed.device)
    inspected = trained.look(parsed.problem[0], parsed.other, parsed.num_problems)
    targets = _targets(parsed.out, names)
    findings, notes = _look(inspected, names)
    records = {name: finding.to_json() for name, finding in findings.items()}
    views = {name: lens_views.views(name, record) for name, record in records.items()}
    drawn = {name: target for name, target in targets.items() if name in views}
    for name, target in drawn.items():
        files.make_directory(target.parent)
        matplotlib_figures.draw(lens_views.plots_of(views[name]), target)
    if parsed.csv:
        csv_records.write(parsed.csv, csv_records.of_findings(records))
    if parsed.json:
        print(json.dumps({"problem": inspected.text, "lenses": records}, allow_nan=False))
        return 0
    console = terminal.console()
    tokens = (
        inspected.tokens + inspected.right_tokens[-1:] * inspected.trained_model.model.is_causal
    )
    heading = lens_views.line_as_read(inspected.text, tokens, inspected.digit_order)
    console.print(heading, "", sep="\n", soft_wrap=True, markup=False)
    for name, shown in views.items():
        title = Text.assemble((name, "bold"), f": {LENSES[name].summary}")
        console.print(title, soft_wrap=True)
        console.print(terminal.Shown(shown), "")
    for note in notes:
        console.print(note, style="dim", soft_wrap=True)
    for target in drawn.values():
        console.print(f"Drawn: {target}", soft_wrap=True)
    return 0


def _look(
    inspected: "InspectedProblem", names: list[str]
) -> tuple[dict[str, "Finding"], list[str]]:
    """Return the findings by lens and, if all lenses were asked for, why some of them do not apply."""
    from abacist.cli.progress import Ticker
    from abacist.inspection.lens import ALL, LENSES, select_lenses

    lenses = LENSES if names == [ALL] else select_lenses(names, inspected)
    findings: dict[str, Finding] = {}
    notes = []
    with Ticker("looking", unit="lenses") as ticker:
        for number, (name, lens) in enumerate(lenses.items()):
            ticker.update(number, len(lenses), name)
            obstacle = lens.obstacle(inspected)
            try:
                if obstacle is None:
                    findings[name] = lens.look(inspected)
            except UserError as error:
                if names != [ALL]:
                    raise
                obstacle = str(error)
            if obstacle is not None:
                notes.append(f"{name}: {obstacle}")
    return findings, notes


def _targets(out: str | None, names: list[str]) -> dict[str, Path]:
    """Return the file for the picture of each lens: one file for one lens, or files in a directory."""
    from abacist.inspection.lens import ALL, LENSES
    from abacist.reports.matplotlib_figures import ENDINGS

    if out is None:
        return {}
    path = Path(out)
    if path.suffix in ENDINGS and not path.is_dir():
        if len(names) > 1 or names == [ALL]:
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
    return {name: path / f"{name}.png" for name in (LENSES if names == [ALL] else names)}


def make_parser() -> Parser:
    """Return the parser of the command's arguments."""
    parser = Parser("look", "Look inside a trained model while it reads a problem.")
    parser.add_run()
    parser.add_checkpoint()
    parser.add_device()
    parser.add_argument("problem", nargs="*", default=[], metavar="PROBLEM", help="such as 12+34")
    parser.add_argument(
        "--lens",
        default=_DEFAULT,
        metavar="NAME[,NAME…]",
        help=f"lenses by name, or all (default: {_DEFAULT}); they are listed below",
    )
    parser.add_argument(
        "--with",
        dest="other",
        metavar="PROBLEM",
        help="patching: the problem whose activations are inserted (default: a problem that differs "
        "in one carry)",
    )
    parser.add_argument(
        "--num-problems",
        type=whole_number(4, _MOST_PROBLEMS),
        default=200,
        metavar="N",
        help="number of test problems for averages, ablations and probes (default: 200)",
    )
    parser.add_argument(
        "--out",
        metavar="FILE|DIR",
        help="draw a picture: a .png or .svg file for one lens, or a directory for all",
    )
    parser.add_json()
    parser.add_csv()
    return parser


def _lenses_help() -> str:
    from abacist.inspection.lens import LENSES

    lines = [f"  {name:16}{lens.summary}" for name, lens in LENSES.items()]
    return "\n".join(["lenses:", *lines])
