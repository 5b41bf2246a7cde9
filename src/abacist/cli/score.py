"""`abacist score`: score a trained model by one suite or many."""

import contextlib
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from abacist import files
from abacist.cli import named_run
from abacist.cli.arguments import Parser, whole_number, whole_numbers
from abacist.configuration import settings
from abacist.errors import ConfigurationError, RunError
from abacist.scoring.config import ScoringConfig

if TYPE_CHECKING:
    from abacist.runs.directory import RunDirectory
    from abacist.runs.run import Run
    from abacist.scoring.records import Scorecard

_SHOWN_FAILURES = 10


def run(arguments: list[str]) -> int:
    """Return exit code 0 whatever the score, or 130 if interrupted; finished suites are kept."""
    parser = make_parser()
    if "--help" in arguments or "-h" in arguments:
        parser.epilog = _suites_help()
    parsed = parser.parse(arguments)
    names = [setting.name for setting in settings(ScoringConfig())]
    changes = {name: value for name in names if (value := getattr(parsed, name)) is not None}

    from abacist.cli import show
    from abacist.reports import csv_records, terminal
    from abacist.reports.tables import shortened

    if parsed.stored:
        if ignored := [*(["suite"] if parsed.suite else []), *changes]:
            raise ConfigurationError(
                f"--stored scores nothing, so --{ignored[0].replace('_', '-')} does not apply. "
                "Leave one of them out."
            )
        return _print_stored(named_run.find(parsed.run, parsed.checkpoint), parsed.json, parsed.csv)
    suites = _default() if parsed.suite is None else parsed.suite.split(",")
    trained = named_run.load(parsed, parsed.device)
    card = scored(trained, suites, changes)
    if parsed.csv:
        csv_records.write(parsed.csv, csv_records.of_scorecard(card))
    if parsed.json:
        print(json.dumps(card.to_json()))
        return 0 if card.complete else 130
    console = terminal.console()
    console.print(show.scorecard(card))
    failures = card.failures
    for failure in failures[:_SHOWN_FAILURES]:
        console.print(f"  {shortened(str(failure.solution))}", soft_wrap=True)
    if failures:
        more = f" and {len(failures) - _SHOWN_FAILURES} more" * (len(failures) > _SHOWN_FAILURES)
        console.print(f"These failures{more}, each with its place and margin: ", end="")
        console.print(str(trained.directory.failures), soft_wrap=True)
    for picture in _pictures(trained, card).values():
        if picture.exists():
            console.print(f"Drawn: {picture}", soft_wrap=True)
    return 0 if card.complete else 130


def scored(
    trained: "Run", suites: list[str] | None = None, changes: dict[str, Any] | None = None
) -> "Scorecard":
    """Score a run, show the progress, and draw the pictures."""
    from abacist.cli.progress import Ticker
    from abacist.reports import matplotlib_figures, score_plots
    from abacist.reports.run_records import read_scorecard
    from abacist.scoring.scorecard import DEFAULT_SUITES

    with Ticker("scoring") as ticker:
        card = trained.score(
            suites or DEFAULT_SUITES,
            lambda name, done, total: ticker.update(done, total, name),
            **(changes or {}),
        )
    sections = dict(card.sections)
    with contextlib.suppress(RunError):
        # A section of more problems may have been kept, and the pictures show what is stored.
        sections |= read_scorecard(trained.directory).sections
    for suite, path in _pictures(trained, card).items():
        plots = score_plots.of_section(suite, sections[suite])
        if not plots:
            continue
        with files.not_saved_as_warning("The picture"):
            matplotlib_figures.draw(plots, path)
    return card


def _print_stored(run_directory: "RunDirectory", as_json: bool, csv: Path | None) -> int:
    """Print the scorecard and the certificate that are stored, without scoring or proving again."""
    from abacist.cli import show
    from abacist.reports import csv_records, run_records, terminal

    card = run_records.read_scorecard(run_directory)
    if csv:
        csv_records.write(csv, csv_records.of_scorecard(card))
    if as_json:
        print(json.dumps(card.to_json()))
        return 0
    console = terminal.console()
    console.print(show.scorecard(card))
    certificate = run_records.read_certificate(run_directory, [])
    if certificate is not None:
        console.print(show.certificate(certificate), soft_wrap=True)
    return 0


def _default() -> list[str]:
    from abacist.scoring.scorecard import DEFAULT_SUITES

    return [*DEFAULT_SUITES, "strata"]


def make_parser() -> Parser:
    """Return the parser of the command's arguments."""
    parser = Parser("score", "Score a trained model by one suite or many.")
    parser.add_run()
    parser.add_checkpoint()
    parser.add_device()
    parser.add_argument(
        "--suite",
        metavar="NAME[,NAME…]",
        help="suites by name, or all (default: lengths,strata); they are listed below",
    )
    parser.add_argument(
        "--stored",
        action="store_true",
        help="print the scorecard and certificate that are stored in the run; score nothing",
    )
    for setting in settings(ScoringConfig()):
        assert setting.range is not None
        is_list = isinstance(setting.value, tuple)
        parser.add_argument(
            f"--{setting.name.replace('_', '-')}",
            type=(whole_numbers if is_list else whole_number)(
                int(setting.range.low), int(setting.range.high)
            ),
            metavar="N,N,…" if is_list else "N",
            help=f"{setting.help} (default: the recipe's{_value(setting.typed)})",
        )
    parser.add_json()
    parser.add_csv()
    return parser


def _value(typed: str) -> str:
    """Return the value that most recipes have, after a comma; nothing where it says nothing."""
    return "" if typed in ("", "none") else f", {typed}"


def _suites_help() -> str:
    from abacist.scoring.scorecard import SUITES

    lines = [f"  {name:16}{suite.summary}" for name, suite in SUITES.items()]
    return "\n".join(["suites:", *lines])


def _pictures(trained: "Run", card: "Scorecard") -> dict[str, Path]:
    """Return the files of the pictures of what has just been scored, by suite."""
    pictures = {
        "lengths": trained.directory.lengths_picture,
        "grid": trained.directory.grid_picture,
        "notation": trained.directory.notation_picture,
    }
    return {suite: path for suite, path in pictures.items() if suite in card.sections}
