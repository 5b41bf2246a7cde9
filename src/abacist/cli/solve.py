"""`abacist solve`: let a trained model solve problems."""

import json
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

from abacist.cli import named_run, streams
from abacist.cli.arguments import Parser
from abacist.errors import ProblemError

if TYPE_CHECKING:
    from abacist.runs.run import Run
    from abacist.scoring.records import Solution


def run(arguments: list[str]) -> int:
    """Return exit code 0 if all answers are right, 1 if any is wrong."""
    parsed = make_parser().parse(arguments)
    trained = named_run.load(parsed, parsed.device)
    if not parsed.problems and sys.stdin.isatty():
        streams.note(
            f"Type one problem per line, such as {trained.task.example}. Ctrl-D ends the input."
        )
    answers = (
        _solve_all(trained, parsed.problems) if parsed.problems else _solve_standard_input(trained)
    )
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


def make_parser() -> Parser:
    """Return the parser of the command's arguments."""
    parser = Parser(
        "solve", "Let a trained model solve problems, token by token, and check its answers."
    )
    parser.add_run()
    parser.add_checkpoint()
    parser.add_device()
    parser.add_argument(
        "problems",
        nargs="*",
        default=[],
        metavar="PROBLEM",
        help="such as 12+34; without problems, standard input is read, one problem per line, and blank "
        "lines are left out. Where the notation has spaces, 1 234 + 5 678 is written with the spaces as "
        "typed, and with = at its end exactly as typed. gcd(12,18) asks a model of %% for one remainder "
        "after the other, and pow(3,100,7) one of * and %% for 3 to the power of 100 modulo 7",
    )
    parser.add_json()
    parser.add_csv()
    return parser


def _solve_all(trained: "Run", problems: list[str]) -> "Iterator[list[Solution]]":
    """Yield the solutions of all problems at once, and show the progress."""
    from abacist.cli.progress import Ticker

    with Ticker("solving", unit="problems") as ticker:

        def report(solved: int, written: int) -> None:
            ticker.update(solved, len(problems), f"{written:,} tokens of the next batch written")

        solutions = trained.solve(problems, report)
    yield solutions


def _solve_standard_input(trained: "Run") -> "Iterator[list[Solution]]":
    """Yield solutions in the order of the problems while these arrive, even without end."""
    is_empty = True
    for problems in streams.arriving_lines(sys.stdin.buffer):
        is_empty = False
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
