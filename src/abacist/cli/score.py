"""`abacist score`: exact match by number of digits, with intervals."""

import json
from typing import TYPE_CHECKING

from abacist.cli.arguments import Parser, whole_number

if TYPE_CHECKING:
    from abacist.evaluation.scorecard import Scorecard
    from abacist.runs.run import Run


def run(arguments: list[str]) -> int:
    """Exit code 0 when scored, whatever the score."""
    parser = Parser("score", "Score a trained model on test problems of many lengths.")
    parser.add_run()
    parser.add_argument(
        "--num-problems",
        type=whole_number(1),
        metavar="N",
        help="test problems for each length (default: the recipe's, 1000)",
    )
    parser.add_argument(
        "--longest",
        type=whole_number(1),
        metavar="N",
        help="longest operands scored, in digits (default: the recipe's, 10000)",
    )
    parser.add_json()
    parsed = parser.parse(arguments)

    from abacist.cli import show
    from abacist.runs.run import load

    trained = load(parsed.run)
    card = scored(trained, parsed.num_problems, parsed.longest)
    if parsed.json:
        print(json.dumps(card.to_json()))
        return 0
    console = show.console()
    console.print(show.scorecard(card))
    for failure in card.failures[:10]:
        console.print(f"  {show.short(failure)}", soft_wrap=True)
    if card.failures:
        console.print(f"Failures with their answers: {trained.directory.failures}")
    return 0


def scored(
    trained: "Run", num_problems: int | None = None, longest: int | None = None
) -> "Scorecard":
    """Score a run with progress shown, and draw the picture."""
    from abacist.cli.progress import Ticker
    from abacist.reports.figures import draw_lengths, series_of

    with Ticker("scoring") as ticker:
        card = trained.score(
            num_problems, longest, lambda name, done, total: ticker.update(done, total, name)
        )
    series = {name: rows for name, rows in series_of(card.to_json()).items() if rows}
    if series:
        longest_trained = max(row.digits for row in card.rows if row.kind == "trained")
        draw_lengths(series, longest_trained, trained.directory.lengths_picture)
    return card
