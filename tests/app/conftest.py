"""A small trained run, the page that shows it, and a browser. The run is trained once per test run."""

from pathlib import Path

import pytest
import torch
from accessibility import violations

import abacist
from abacist.app.shown_runs import Gallery, ShownRun
from abacist.cli import main
from abacist.runs.run import Run

LEARNED = {
    "training.num_steps": 500,
    "training.validate_every": 250,
    "training.checkpoint_every": 250,
    "training.record_embeddings_every": 100,
    "scoring.num_problems": 20,
    "scoring.longest": 20,
}
"""Settings for training of a few seconds, after which most sums are right."""


@pytest.fixture(scope="session")
def learned(train_once) -> Run:
    """A run made by the commands that a person types."""
    settings = [word for name, value in LEARNED.items() for word in (f"--{name}", str(value))]

    def train_and_report(out: Path) -> None:
        assert main(["train", "add", "--out", str(out), *settings]) == 0
        assert main(["report", str(out)]) == 0

    return abacist.load(train_once("learned", train_and_report))


@pytest.fixture(scope="session")
def unlearned(train_once, quick_settings) -> Run:
    """A looped model of two layers that has hardly learned anything."""
    settings = quick_settings | {
        "model.num_layers": 2,
        "model.recurrences": 2,
        "model.injection": "add",
    }
    path = train_once("unlearned", lambda out: abacist.train("add", out=out, settings=settings))
    return abacist.load(path)


@pytest.fixture(scope="session")
def calculator(train_once, quick_settings) -> ShownRun:
    """A run for several operations that has hardly learned anything."""
    settings = quick_settings | {"training.num_steps": 10}
    settings |= {"task.operations": "+,*,%", "task.weights": "1,1,1", "format": "usual"}
    settings |= {"model.positions": "sinusoidal"}
    path = train_once("calculator", lambda out: abacist.train("add", out=out, settings=settings))
    return ShownRun("calculator", abacist.load(path))


@pytest.fixture(scope="session")
def shown_run(learned) -> ShownRun:
    return ShownRun("learned", learned)


@pytest.fixture(scope="session")
def looped(unlearned) -> ShownRun:
    return ShownRun("unlearned", unlearned)


@pytest.fixture(scope="session")
def gallery(shown_run, looped, calculator) -> Gallery:
    return Gallery([shown_run, looped, calculator])


@pytest.fixture(scope="session")
def address(gallery):
    """Where the page is served."""
    from abacist.app import page

    threads = torch.get_num_threads()
    with page.served(gallery) as address:
        yield address
    torch.set_num_threads(threads)


class Visit:
    """The page in a browser, with everything noted that must not happen."""

    def __init__(self, browser, address: str, **settings) -> None:
        self.context = browser.new_context(**settings)
        self.page = self.context.new_page()
        self.complaints: list[str] = []
        self.page.on("console", self._console)
        self.page.on("pageerror", lambda error: self.complaints.append(f"error: {error}"))
        self.page.on("request", self._request)
        self.address = address
        self.page.goto(address)
        self.page.wait_for_selector("#shown .answer")

    def _console(self, message) -> None:
        if message.type == "error":
            self.complaints.append(f"console: {message.text}")

    def _request(self, request) -> None:
        if not request.url.startswith((self.address, "data:", "blob:")):
            self.complaints.append(f"request: {request.url}")

    def type(self, problem: str) -> None:
        """Type a problem and ask for its answer."""
        self.page.get_by_label("Problem", exact=True).fill(problem)
        self.page.get_by_role("button", name="Calculate").click()

    def ask(self, problem: str) -> None:
        """Type a problem and wait for its answer."""
        self.type(problem)
        asked = "document.querySelector('#shown .compared td')?.textContent"
        self.page.wait_for_function(f"problem => {asked} === problem", arg=problem)

    def accessibility(self) -> list[str]:
        """What axe-core finds against WCAG of levels A and AA."""
        return violations(self.page)


@pytest.fixture
def visit(browser, address):
    """Opens the page as somebody does; nothing may be fetched from elsewhere, and nothing fail."""
    visits = []

    def begin(**settings) -> Visit:
        visits.append(Visit(browser, address, **settings))
        return visits[-1]

    yield begin
    for made in visits:
        made.context.close()
        assert made.complaints == []
