"""`abacist solve`: let a trained model solve problems."""

import json
import re
import sys

from abacist.cli.arguments import Parser
from abacist.errors import ProblemError


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
        help="such as 12+34; without problems, standard input is read, one problem per line",
    )
    parser.add_json()
    # A word such as -3+4 is a problem, which gets its own error message, and not an option.
    signed = [word for word in arguments if re.match(r"-[0-9.(]", word)]
    parsed = parser.parse([word for word in arguments if word not in signed])
    problems = [*parsed.problems, *signed] or _from_standard_input()

    from abacist.cli.progress import Ticker
    from abacist.runs.run import load

    trained = load(parsed.run, parsed.device)
    with Ticker("solving") as ticker:

        def report(solved: int, written: int) -> None:
            ticker.update(solved, len(problems), f"{written:,} tokens of the next batch written")

        solutions = trained.solve(problems, report)
    for solution in solutions:
        print(json.dumps(solution.to_json()) if parsed.json else solution)
    return 0 if all(solution.correct for solution in solutions) else 1


def _from_standard_input() -> list[str]:
    if sys.stdin.isatty():
        print("Type one problem per line, such as 12+34. Ctrl-D ends the input.", file=sys.stderr)
    problems = sys.stdin.read().splitlines()
    if not problems:
        raise ProblemError(
            "there is no problem to solve. Type one such as 12+34, or send one per line."
        )
    return problems
