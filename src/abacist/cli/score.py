"""`abacist score`: score a trained model by one suite or many."""

import json
from typing import TYPE_CHECKING, Any

from abacist.cli.arguments import Parser, whole_number
from abacist.configuration import settings
from abacist.scoring.config import ScoringConfig

if TYPE_CHECKING:
    from abacist.runs.run import Run
    from abacist.scoring.scorecard import Scorecard

_SHOWN_FAILURES = 10


def run(arguments: list[str]) -> int:
    """Exit code 0 when scored, whatever the score; 130 when interrupted, keeping what was done."""
    parser = _parser()
    if "--help" in arguments or "-h" in arguments:
        parser.epilog = _suites_help()
    parsed = parser.parse(arguments)
    names = [setting.name for setting in settings(ScoringConfig())]
    changes = {name: value for name in names if (value := getattr(parsed, name)) is not None}

    from abacist.cli import show
    from abacist.runs.run import load

    trained = load(parsed.run, parsed.device)
    suites = _default() if parsed.suite is None else parsed.suite.split(",")
    card = scored(trained, suites, changes)
    if parsed.json:
        print(json.dumps(card.to_json()))
        return 0 if card.complete else 130
    console = show.console()
    console.print(show.scorecard(card))
    failures = card.failures
    for failure in failures[:_SHOWN_FAILURES]:
        console.print(f"  {show.short(failure.solution)}", soft_wrap=True)
    if failures:
        more = f" and {len(failures) - _SHOWN_FAILURES} more" * (len(failures) > _SHOWN_FAILURES)
        console.print(f"These failures{more}, each with its place and margin: ", end="")
        console.print(str(trained.directory.failures), soft_wrap=True)
    for picture in _pictures(trained, card):
        console.print(f"Drawn: {picture}", soft_wrap=True)
    return 0 if card.complete else 130


def scored(
    trained: "Run", suites: list[str] | None = None, changes: dict[str, int] | None = None
) -> "Scorecard":
    """Score a run with progress shown, and draw the pictures."""
    from abacist.cli.progress import Ticker
    from abacist.reports.figures import draw_grid, draw_lengths, series_of
    from abacist.scoring.scorecard import DEFAULT_SUITES

    with Ticker("scoring") as ticker:
        card = trained.score(
            suites or DEFAULT_SUITES,
            lambda name, done, total: ticker.update(done, total, name),
            **(changes or {}),
        )
    record = card.to_json()
    if "lengths" in record["sections"]:
        series = {name: rows for name, rows in series_of(record).items() if rows}
        if series:
            rows = card.sections["lengths"].rows
            longest_trained = max(row.digits for row in rows if row.kind == "trained")
            draw_lengths(series, longest_trained, trained.directory.lengths_picture)
    if "grid" in record["sections"]:
        details: dict[str, Any] = record["sections"]["grid"]["details"]
        draw_grid(details, trained.directory.grid_picture)
    return card


def _default() -> list[str]:
    from abacist.scoring.scorecard import DEFAULT_SUITES

    return [*DEFAULT_SUITES, "strata"]


def _parser() -> Parser:
    parser = Parser("score", "Score a trained model by one suite or many.")
    parser.add_run()
    parser.add_device()
    parser.add_argument(
        "--suite",
        metavar="NAME[,NAME…]",
        help="what to score, or all (default: lengths,strata); the names are below",
    )
    for setting in settings(ScoringConfig()):
        assert setting.range is not None
        parser.add_argument(
            f"--{setting.name.replace('_', '-')}",
            type=whole_number(int(setting.range.low), int(setting.range.high)),
            metavar="N",
            help=f"{setting.help} (default: the recipe's, {setting.typed})",
        )
    parser.add_json()
    return parser


def _suites_help() -> str:
    from abacist.scoring.scorecard import SUITES

    lines = [f"  {name:16}{suite.summary}" for name, suite in SUITES.items()]
    return "\n".join(["suites:", *lines])


def _pictures(trained: "Run", card: "Scorecard") -> list[str]:
    """Pictures that were drawn of what has just been scored."""
    drawn = {
        "lengths": trained.directory.lengths_picture,
        "grid": trained.directory.grid_picture,
    }
    return [str(path) for name, path in drawn.items() if name in card.sections and path.exists()]
