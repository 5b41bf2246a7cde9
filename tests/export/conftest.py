"""The committed run, other runs that can be exported, and exported pages in a browser."""

from pathlib import Path

import pytest

import abacist
from abacist.export import exportable, html
from abacist.runs.run import Run

SMALL = {"model.width": 8, "model.mlp_width": 8}
"""Settings of models that are quick to check."""
EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.fixture(scope="session")
def example() -> Run:
    """The run whose page is committed, with its certificate."""
    return abacist.load(EXAMPLES / "add-tiny")


@pytest.fixture(scope="session")
def smallest() -> Run:
    """The committed run with 84 parameters: the tanh form of GELU, a tied head, no norm before it."""
    return abacist.load(EXAMPLES / "smallest-adder")


OF_GATED = {
    "geglu": {"model.embedding_norm": True, "model.norm": "layer", "model.norm_epsilon": 0.01},
    "swiglu": {"model.final_norm": False, "model.biases": "none", "model.tied_head": True},
}
"""Settings of two models with gated MLPs, by activation, that show all other optional parts."""


def _gated(activation, train_once, quick_settings) -> Run:
    settings = quick_settings | OF_GATED[activation]
    settings |= {"model.activation": activation, "model.final_mlp": True}
    path = train_once(activation, lambda out: abacist.train("add", out=out, settings=settings))
    return abacist.load(path)


@pytest.fixture(scope="session")
def geglu(train_once, quick_settings) -> Run:
    """A run whose MLPs are gated by GELU, and that has hardly learned anything."""
    return _gated("geglu", train_once, quick_settings)


@pytest.fixture(scope="session")
def swiglu(train_once, quick_settings) -> Run:
    """A run whose MLPs are gated by SiLU, and that has hardly learned anything."""
    return _gated("swiglu", train_once, quick_settings)


@pytest.fixture(scope="session")
def subtracting(train_once, quick_settings) -> Run:
    """A run of differences that has hardly learned anything, and has no certificate."""
    path = train_once(
        "subtracting", lambda out: abacist.train("subtract", out=out, settings=quick_settings)
    )
    return abacist.load(path)


@pytest.fixture(scope="session", params=["multiply", "divide", "sort"])
def working(request, train_once, quick_settings) -> Run:
    """A run that writes out its calculations, and has hardly learned anything."""
    recipe, settings = request.param, quick_settings | SMALL
    if recipe == "sort":
        settings = settings | {
            "training.curriculum": (),
            "training.decay_steps": 2,
            "task.max_numbers": 5,
        }
    path = train_once(
        f"working-{recipe}", lambda out: abacist.train(recipe, out=out, settings=settings)
    )
    return abacist.load(path)


@pytest.fixture(scope="session")
def calculating(train_once, quick_settings) -> Run:
    """A run of five operations that has hardly learned anything."""
    path = train_once(
        "calculating",
        lambda out: abacist.train("calculator", out=out, settings=quick_settings | SMALL),
    )
    return abacist.load(path)


@pytest.fixture
def open_page(browser, tmp_path):
    """Opens the page of a run from its file; it may request nothing, and no error may occur."""
    contexts, complaints = [], []

    def open_it(run: Run, **settings):
        file = tmp_path / "calculator.html"
        file.write_text(html.page(exportable.of_run(run, "html")))
        context = browser.new_context(**settings)
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda message: complaints.append(f"{message.type}: {message.text}"))
        page.on("pageerror", lambda error: complaints.append(f"error: {error}"))
        page.on("request", lambda request: complaints.append(f"request: {request.url}"))
        page.goto(file.as_uri())
        assert complaints == [f"request: {file.as_uri()}"]
        complaints.clear()
        return page

    yield open_it
    for context in contexts:
        context.close()
    assert complaints == []
