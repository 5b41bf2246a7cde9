"""Progress: estimates that count down, and nothing that reads as if time stood still."""

import re
import sys

import pytest

from abacist.cli import progress
from abacist.cli.progress import Ticker, time_left
from abacist.data.check import check
from abacist.reports.terminal import console


class Clock:
    """A clock that tests turn by hand."""

    def __init__(self) -> None:
        self.now = 100.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch):
    clock = Clock()
    monkeypatch.setattr(progress.time, "monotonic", clock.monotonic)
    # A line for every report, so that each estimate is seen.
    monkeypatch.setattr(progress, "_SECONDS_TO_FIRST_LINE", 0.0)
    return clock


def estimates(printed: str) -> list[int]:
    return [int(seconds) for seconds in re.findall(r"(\d+) s left", printed)]


def test_an_estimate_counts_down_while_nothing_is_reported(clock, capsys):
    with Ticker("training seeds", unit="steps") as ticker:
        for second in range(60):
            clock.now = 100.0 + second
            # As from seeds that are validated every 250 steps, that is, every ten seconds.
            ticker.update(250 * (second // 10), 1_500)
    shown = estimates(capsys.readouterr().err)
    assert len(shown) > 40
    assert shown == sorted(shown, reverse=True)
    assert shown[0] == 50
    assert shown[-1] == 1


def test_nothing_is_said_to_take_no_time(clock, capsys):
    with Ticker("scoring") as ticker:
        for second in range(30):
            clock.now = 100.0 + second
            ticker.update(min(990 + second, 999), 1_000, "10,000 digits")
    printed = capsys.readouterr().err
    assert " 0 s left" not in printed
    assert "scoring: 99%, 10,000 digits\n" in printed


def test_a_second_task_has_an_estimate_of_its_own(clock, capsys):
    with Ticker("scoring") as ticker:
        for begin in (100.0, 110.0):
            for second in range(10):
                clock.now = begin + second
                ticker.update(10 * second, 100)
    assert max(estimates(capsys.readouterr().err)) < 100


def test_steps_of_an_earlier_process_do_not_shorten_the_estimate(clock, capsys):
    with Ticker("training", unit="steps") as ticker:
        for second in range(10):
            clock.now = 103.0 + second
            ticker.update(901 + second, 1_000)
    # One step a second.
    assert estimates(capsys.readouterr().err) == list(range(98, 89, -1))


def test_a_line_above_the_bar_is_printed_whole_with_its_brackets(clock, capsys, monkeypatch):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "60")
    hint = (
        "interrupted. Resume with: abacist train --resume --out 'runs/t[red]x/:smile:/a-long-name'"
    )
    with Ticker("training", unit="steps") as ticker:
        clock.now += 10
        ticker.update(1, 10, "t[red]x")
        ticker.say(hint)
    printed = capsys.readouterr().err
    assert hint in printed
    assert "t[red]x\n" in re.sub(r"\x1b[^A-Za-z]*[A-Za-z]| +(?=\n)", "", printed)


def test_a_path_is_printed_with_its_brackets(capsys):
    console().print("Drawn: runs/t[red]x/:smile:.png", soft_wrap=True)
    assert capsys.readouterr().out == "Drawn: runs/t[red]x/:smile:.png\n"


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.4, ""), (-3, ""), (1, "1 s left"), (119, "119 s left"), (180, "3 min left")],
)
def test_times_are_in_words(seconds, text):
    assert time_left(seconds) == text


def test_progress_of_scores_by_length_counts_tokens(untrained):
    reports = []
    untrained.score(("lengths",), lambda name, done, total: reports.append((name, done, total)))
    _, done, total = reports[-1]
    assert done == total
    # Three quarters of the problems have at most three digits, and the others have most tokens.
    assert max(done for name, done, _ in reports if name == "3 digits") < total / 2


def test_one_seed_is_not_many(run, tmp_path, quick_settings, monkeypatch):
    monkeypatch.setattr(progress, "_SECONDS_TO_FIRST_LINE", 0.0)
    monkeypatch.setattr(progress, "_PATIENCE_SECONDS", 0.0)
    words = [word for name, value in quick_settings.items() for word in (f"--{name}", str(value))]
    _, _, err = run("train", "--seeds", "1", "--out", str(tmp_path / "seeds"), "--json", *words)
    assert "1 seed finished" in err
    assert "1 seeds" not in err


def test_data_check_draws_100_000_problems_and_reports_each_block(run, monkeypatch):
    drawn = []

    def checked(task, split, num_problems, seed, on_progress):
        drawn.append(num_problems)
        return check(task, split, 1_000, seed, on_progress)

    monkeypatch.setattr("abacist.data.check.check", checked)
    assert run("data", "check", "add")[0] == 0
    assert drawn == [100_000]
