"""How fast the page opens and answers, alone and with twenty people at once; also `look` and `report`.

    python benchmarks/page.py [--run runs/add-…] [--out results/page.json]
    python benchmarks/page.py --pictures docs

The second command takes the pictures of docs/page.md instead. Without `--run`, the default recipe is
trained first. Needs Chromium on the PATH and `pip install --editable ".[test]"`. Each time is printed with
its target.
"""

import argparse
import json
import math
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch
from playwright.sync_api import Browser, FloatRect, Page, sync_playwright

import abacist
from abacist.app.answers import answer
from abacist.app.shown_runs import open_gallery
from abacist.reports.certificate_picture import tiles
from abacist.reports.html import CHARTS_STYLE
from abacist.runs.circumstances import circumstances

PEOPLE, REQUESTS = 20, 5
NUM_SUMS = 100
DIGITS = 20
ROUNDS = 3
TARGET_SECONDS = {
    "first usable page": 8.0,
    "answer, median": 0.4,
    "answer, 95th percentile": 1.0,
    "slowest of 20 people": 5.0,
    "look, all lenses": 5.0,
    "report": 15.0,
}
"""Largest acceptable time of each measurement, in seconds."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--run", type=Path)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--pictures", type=Path, metavar="DIR")
    parsed = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        run = parsed.run or abacist.train("add", out=Path(folder) / "add").path
        if parsed.pictures:
            taken(run, parsed.pictures)
            return
        seconds = measured(run)
    for name, measured_seconds in seconds.items():
        print(f"{name:26}{measured_seconds:7.3f} s   target: {TARGET_SECONDS[name]} s")
    if parsed.out:
        record = {
            "seconds": seconds,
            "to_reach": TARGET_SECONDS,
            "people": PEOPLE,
            "requests_of_each": REQUESTS,
            "sums": NUM_SUMS,
            "digits": DIGITS,
            "circumstances": circumstances()
            | {"gradio": version("gradio"), "threads": torch.get_num_threads()},
        }
        parsed.out.write_text(json.dumps(record, indent=1) + "\n")


def measured(run: Path) -> dict[str, float]:
    seconds: dict[str, float] = {}
    with chromium() as browser:
        opened = [opening(run, browser) for _ in range(ROUNDS)]
        seconds["first usable page"] = statistics.median(opened)
        with played(run) as address:
            answered = sorted(answering(browser, address))
            seconds["answer, median"] = statistics.median(answered)
            seconds["answer, 95th percentile"] = answered[math.ceil(0.95 * len(answered)) - 1]
            seconds["slowest of 20 people"] = max(crowd(address))
    look = ["look", str(run), "1234567890+9876543210", "--lens", "all"]
    seconds["look, all lenses"] = statistics.median(command(look) for _ in range(ROUNDS))
    report = ["report", str(run)]
    seconds["report"] = statistics.median(command(report) for _ in range(ROUNDS))
    return seconds


@contextmanager
def chromium() -> Iterator[Browser]:
    path = shutil.which("chromium")
    if path is None:
        sys.exit("no chromium is on the PATH. Type apt-get install chromium.")
    with sync_playwright() as playwright:
        yield playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])


@contextmanager
def played(run: Path) -> Iterator[str]:
    """Start `abacist play` as a person does, and yield its address."""
    process = subprocess.Popen(
        [sys.executable, "-m", "abacist", "play", str(run)],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    try:
        yield process.stdout.readline().split()[1]
    finally:
        process.terminate()
        process.wait()


def opening(run: Path, browser: Browser) -> float:
    """Time from the command to a page that shows an answer and takes a problem."""
    begin = time.perf_counter()
    with played(run) as address:
        page = opened(browser, address)
        seconds = time.perf_counter() - begin
        page.close()
    return seconds


def opened(browser: Browser, address: str) -> Page:
    page = browser.new_page()
    page.goto(address)
    page.wait_for_selector("#shown .answer .written")
    page.wait_for_selector("#problem textarea, #problem input")
    return page


def answering(browser: Browser, address: str) -> Iterator[float]:
    """Yield the times from typing a problem to its answer, with the attention of its first digit drawn."""
    page = opened(browser, address)
    drawn = random.Random(0)
    for _ in range(NUM_SUMS):
        a, b = (drawn.randrange(10 ** (DIGITS - 1), 10**DIGITS) for _ in range(2))
        begin = time.perf_counter()
        ask(page, f"{a}+{b}")
        page.locator("#shown .written").first.focus()
        page.wait_for_selector("#shown .token[data-share]")
        yield time.perf_counter() - begin


def crowd(address: str) -> list[float]:
    """Time every request of people who ask at once, each as soon as the previous one is answered."""
    seconds: list[float] = []

    def person(number: int) -> None:
        drawn = random.Random(number)
        for _ in range(REQUESTS):
            a, b = (drawn.randrange(10 ** (DIGITS - 1), 10**DIGITS) for _ in range(2))
            begin = time.perf_counter()
            answer = asked(address, f"{a}+{b}")
            seconds.append(time.perf_counter() - begin)
            assert answer["expected"] == str(a + b), answer

    people = [threading.Thread(target=person, args=(number,)) for number in range(PEOPLE)]
    for one in people:
        one.start()
    for one in people:
        one.join()
    assert len(seconds) == PEOPLE * REQUESTS, f"{len(seconds)} requests were answered"
    return seconds


def asked(address: str, problem: str) -> dict[str, Any]:
    """Ask the JSON interface, whose requests go through the same queue as those of the page."""
    endpoint = f"{address}/gradio_api/call/v2/answer"
    body = json.dumps({"problem": problem}).encode()
    request = urllib.request.Request(endpoint, body, {"Content-Type": "application/json"})
    with urllib.request.urlopen(request) as response:
        event = json.load(response)["event_id"]
    with urllib.request.urlopen(f"{endpoint}/{event}") as response:
        answers: list[dict[str, Any]] = json.loads(response.read().decode().partition("data: ")[2])
    return answers[0]


def tiles_of(run: Path, problem: str) -> str:
    """Return the certificate of a run as an SVG file, with the path of one problem through its tiles."""
    shown_run = open_gallery([str(run)]).find(None)
    table, inside = shown_run.neighbourhoods, answer(shown_run, problem).inside
    assert table is not None, f"{run} has no certificate. Type abacist prove {run}."
    assert inside is not None
    path = [number for number in inside.neighbourhoods if number is not None]
    picture = tiles(table.sizes, path).replace(
        "<svg ", '<svg xmlns="http://www.w3.org/2000/svg" ', 1
    )
    style = CHARTS_STYLE.read_text(encoding="utf-8")
    return picture.replace("<defs>", f"<style>{style}</style><defs>", 1) + "\n"


def taken(run: Path, folder: Path) -> None:
    """Take pictures of a sum being written, its certificate, heads switched off, and a phone."""
    (folder / "page-certificate.svg").write_text(tiles_of(run, "9584631+42379"))
    with chromium() as browser, played(run) as address:
        page = opened(browser, address)
        page.set_viewport_size({"width": 1120, "height": 1300})
        ask(page, "9584631+42379")
        page.wait_for_timeout(3_000)
        for _ in range(4):
            page.locator("#shown").get_by_role("button", name="Step").click()
        page.wait_for_timeout(1_000)
        page.screenshot(path=folder / "page.png", clip=down_to(page, "#shown"))
        page.locator("#certificate").screenshot(path=folder / "page-certificate.png")
        page.get_by_role("button", name="Break it: switch").click()
        for head in ("head 0", "head 1"):
            page.get_by_label(head, exact=True).check()
            page.wait_for_function(
                f"document.querySelector('#broken').innerText.includes('{head}')"
            )
        page.locator("#beside").get_by_label(run.name, exact=True).check()
        page.wait_for_function("document.querySelectorAll('#shown .answer').length === 2")
        page.locator("#shown .written").nth(3).hover()
        page.wait_for_timeout(3_000)
        page.locator("#shown").screenshot(path=folder / "page-broken.png")
        phone = browser.new_page(
            viewport={"width": 375, "height": 1100}, color_scheme="dark", has_touch=True
        )
        phone.goto(address)
        phone.wait_for_selector("#shown .answer .written")
        ask(phone, "999999+1")
        phone.locator("#shown .written").nth(1).tap()
        phone.wait_for_timeout(3_000)
        phone.locator("#shown").screenshot(path=folder / "page-phone.png")


def ask(page: Page, problem: str) -> None:
    page.get_by_label("Problem", exact=True).fill(problem)
    page.get_by_role("button", name="Calculate").click()
    page.wait_for_function(
        "sum => document.querySelector('.compared').innerText.includes(sum)", arg=problem
    )


def down_to(page: Page, selector: str) -> FloatRect:
    """Return the part of the page from its top to the end of an element."""
    page.evaluate("scrollTo(0, 0)")
    box = page.locator(selector).bounding_box()
    assert box is not None
    return {"x": 0, "y": 0, "width": 1120, "height": box["y"] + box["height"] + 16}


def command(arguments: list[str]) -> float:
    begin = time.perf_counter()
    subprocess.run(
        [sys.executable, "-m", "abacist", *arguments], check=True, stdout=subprocess.DEVNULL
    )
    return time.perf_counter() - begin


if __name__ == "__main__":
    main()
