"""`abacist solve`: let a trained model solve problems."""

import json
import re
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

from abacist.cli import streams
from abacist.cli.arguments import Parser
from abacist.errors import ProblemError

if TYPE_CHECKING:
    from abacist.runs.run import Run
    from abacist.scoring.records import Solution


def run(arguments: list[str]) -> int:
    """Return exit code 0 if all answers are right, 1 if any is wrong."""
    parser = Parser(
        "solve", "Let a trained model solve problems, token by token, and check its answers."
    )
    parser.add_run()
    parser.add_device()
    parser.add_argument(
        "problems",
        nargs="*",
        metavar="PROBLEM",
        help="such as 12+34; without problems, standard input is read, one problem per line. Where the "
        "notation has spaces, 1 234 + 5 678 is written with the spaces as typed, and with = at its end "
        "exactly as typed",
    )
    parser.add_json()
    parser.add_csv()
    # A word such as -3+4 is a problem, which gets its own error message, and not an option.
    signed = [word for word in arguments if re.match(r"-[0-9.(]", word)]
    parsed = parser.parse([word for word in arguments if word not in signed])
    problems = [*parsed.problems, *signed]
    if not problems and sys.stdin.isatty():
        print("Type one problem per line, such as 12+34. Ctrl-D ends the input.", file=sys.stderr)

    from abacist.runs.run import load

    trained = load(parsed.run, parsed.device)
    answers = _solve_all(trained, problems) if problems else _solve_standard_input(trained)
    code = 0
    records: list[dict[str, object]] = []
    for solutions in answers:
        if parsed.csv:
            records += [solution.to_json() for solution in solutions]
        for solution in solutions:
            print(json.dumps(solution.to_json()) if parsed.json else solution)
        sys.stdout.flush()
        if not all(solution.correct for solution in solutions):
            code = 1
    if parsed.csv:
        from abacist.reports import csv_records

        csv_records.write(parsed.csv, records)
    return code


def _solve_all(trained: "Run", problems: list[str]) -> "Iterator[list[Solution]]":
    """Yield the solutions of all problems at once, and show the progress."""
    from abacist.cli.progress import Ticker

    with Ticker("solving") as ticker:

        def report(solved: int, written: int) -> None:
            ticker.update(solved, len(problems), f"{written:,} tokens of the next batch written")

        solutions = trained.solve(problems, report)
    yield solutions


def _solve_standard_input(trained: "Run") -> "Iterator[list[Solution]]":
    """Yield solutions in the order of the problems while these arrive, even without end."""
    is_empty = True
    for problems in streams.arriving_lines(sys.stdin.buffer):
        is_empty = is_empty and not problems
        yield from _solve_up_to_a_mistake(trained, problems)
    if is_empty:
        raise ProblemError(
            "there is no problem to solve. Type one such as 12+34, or send one per line."
        )


def _solve_up_to_a_mistake(trained: "Run", problems: list[str]) -> "Iterator[list[Solution]]":
    """Yield the solutions of the problems before the first that cannot be read, then raise its error."""
    try:
        yield trained.solve(problems)
    except ProblemError:
        if len(problems) == 1:
            raise
        half = len(problems) // 2
        yield from _solve_up_to_a_mistake(trained, problems[:half])
        yield from _solve_up_to_a_mistake(trained, problems[half:])
