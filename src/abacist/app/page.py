"""The page: controls of Gradio around what the rest of this room finds out and draws.

    with served(open_gallery(["latest"])) as address: …

Nothing on it comes from another address: fonts are the system's, scripts and styles its own.
"""

import contextlib
import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch

from abacist.app import answers, lengths, race, random_problems, switched_off, vectors
from abacist.app.answer_card import alert, answer_card, side_by_side
from abacist.app.controls import api, gr
from abacist.app.grid_card import failures_card, grid_card
from abacist.app.questions import Questions, by_chance
from abacist.app.race_card import race_card
from abacist.app.shown_runs import Gallery, ShownRun
from abacist.app.vectors_card import vectors_card
from abacist.errors import AbacistError, UserError
from abacist.reports.html import CHARTS_STYLE
from abacist.reports.html_builder import Markup, element, prose, together
from abacist.reports.run_report import verdict

_NOTHING = "nothing"
_FIRST_DIGITS = 6
_MOST_WAITING = 200
"""Requests that may wait; more are described to come back."""
_ONE_AT_A_TIME = {"concurrency_limit": 1, "concurrency_id": "model"}
"""A model answers one request after the other, whoever asks."""
_WAYS = [("set to 0", "zero"), ("set to its mean", "mean")]
_CELL_CLICKED = """
element.addEventListener("click", (event) => {
  const cell = event.target.closest("button[data-first]");
  if (cell) trigger("click", { first: Number(cell.dataset.first), second: Number(cell.dataset.second) });
});
"""
_HERE = Path(__file__).parent


@contextlib.contextmanager
def served(
    gallery: Gallery, host: str | None = None, port: int | None = None, open_browser: bool = False
) -> Iterator[str]:
    """Serve the page and give its address; at the end it is taken down.

    Without a port it is the first free one from 7860 on; without a host Gradio's own settings hold.
    Raises `UserError` where it cannot be served there.
    """
    _check_address(host, port)
    # One core is left to the server.
    torch.set_num_threads(max(1, torch.get_num_threads() - 1))
    page = build(gallery)
    _, address, _ = page.launch(
        server_name=host, server_port=port, inbrowser=open_browser, **_how()
    )
    try:
        yield address.rstrip("/")
    finally:
        page.close(verbose=False)


def wait() -> None:
    """Until Ctrl-C is pressed."""
    with contextlib.suppress(KeyboardInterrupt):
        threading.Event().wait()


def build(gallery: Gallery) -> gr.Blocks:
    """The page with all its controls, not yet served."""
    skin, first = _Skin(gallery), gallery.find(None)
    begun = _example(first)
    page = gr.Blocks(title="abacist", analytics_enabled=False)
    with page:
        header = _html(_header(first), "header")
        run = gr.Radio(
            gallery.names,
            value=first.name,
            label="Run",
            elem_id="run",
            visible=len(gallery.names) > 1,
        )
        with gr.Row(equal_height=True):
            problem = gr.Textbox(begun, label="Problem", max_lines=4, scale=4, elem_id="problem")
            calculate = gr.Button("Calculate", variant="primary", scale=1, elem_id="calculate")
        digits = gr.Slider(**_digits(first), step=1, elem_id="digits", buttons=[])
        with gr.Row():
            off = gr.CheckboxGroup(first.parts, label="Switched off", scale=3, elem_id="off")
            way = gr.Radio(_WAYS, value="zero", label="What is off is", elem_id="way")
            beside = gr.Radio(
                [_NOTHING, *gallery.names],
                value=_NOTHING,
                label="Beside it, with all parts on",
                elem_id="beside",
            )
        shown = _html(skin.answered(first.name, begun, [], "zero", _NOTHING), "shown")
        # Behind the answer, so that nothing above it moves when parts are switched.
        broken = _html("", "broken")
        grid = _html(_grid(first), "lengths", js_on_load=_CELL_CLICKED)
        with gr.Row():
            score = gr.Button(
                "Score the grid", elem_id="score", visible=_can_score(first), scale=0, min_width=280
            )
        cell = _html("", "cell")
        _html(element("h2", "A race against plain Python"), "race-title")
        with gr.Row():
            race_on = gr.Button("Race with this problem", elem_id="race", scale=0, min_width=280)
        raced = _html("", "raced")
        vectors_shown = _html(_vectors(first), "vectors")

        asked = [run, problem, off, way, beside]
        for begins in (calculate.click, problem.submit, beside.input):
            _on(begins, skin.answered, asked, shown)
        _on(digits.input, skin.drawn, [run, digits, off, way, beside], [problem, shown])
        for control in (off, way):
            _on(control.input, skin.switched, asked, [shown, broken])
        about_run = [header, problem, digits, off, broken, shown, grid, score, cell, raced]
        _on(run.input, skin.turned, [run, beside], [*about_run, vectors_shown])
        _on(score.click, skin.scored, run, [grid, score])
        _on(grid.click, skin.failures, run, cell)
        _on(race_on.click, skin.raced, [run, problem], raced)
        for name, question in Questions(gallery).all().items():
            api(question, api_name=name, **_ONE_AT_A_TIME)
    page.queue(max_size=_MOST_WAITING)
    return page


class _Skin:
    """What happens when a control is used: from its values to HTML."""

    def __init__(self, gallery: Gallery) -> None:
        self.gallery = gallery

    def answered(self, run: str, problem: str, off: list[str], way: str, beside: str) -> str:
        """The answer, and that of another run or of the whole one beside it."""
        cards = [
            _card(lambda: answer_card(answers.answer(self.gallery.find(run), problem, off, way)))
        ]
        if beside != _NOTHING:
            other = _card(lambda: answer_card(answers.answer(self.gallery.find(beside), problem)))
            cards.append(other)
        return side_by_side(cards)

    def drawn(
        self, run: str, digits: int, off: list[str], way: str, beside: str
    ) -> tuple[Any, str]:
        """A new problem of so many digits, with its answer."""
        try:
            problem = random_problems.drawn(self.gallery.find(run), int(digits), by_chance())
        except AbacistError as error:
            return gr.skip(), alert(str(error))
        return problem, self.answered(run, problem, off, way, beside)

    def switched(
        self, run: str, problem: str, off: list[str], way: str, beside: str
    ) -> tuple[str, str]:
        """The answer with some parts off, and what they do to test problems."""
        found = self.answered(run, problem, off, way, beside)
        if not off:
            return found, ""
        return found, _card(lambda: _broken(self.gallery.find(run), off, way))

    def turned(self, run: str, beside: str) -> tuple[Any, ...]:
        """Everything about another run, with an example of its own."""
        shown_run = self.gallery.find(run)
        begun = _example(shown_run)
        return (
            _header(shown_run),
            begun,
            gr.Slider(**_digits(shown_run)),
            gr.CheckboxGroup(shown_run.parts, value=[]),
            "",
            self.answered(run, begun, [], "zero", beside),
            _grid(shown_run),
            gr.Button(visible=_can_score(shown_run)),
            "",
            "",
            _vectors(shown_run),
        )

    def scored(self, run: str) -> tuple[str, Any]:
        """The grid of a run that has none in its scorecard."""
        shown_run = self.gallery.find(run)
        found = _card(lambda: grid_card(shown_run.name, lengths.scored_grid(shown_run)))
        return together([_GRID_TITLE, found]), gr.Button("Score the grid again")

    def failures(self, run: str, event: gr.EventData) -> str:
        """What goes wrong in the cell that was clicked."""
        first, second = event._data.get("first"), event._data.get("second")
        if first is None or second is None:
            return ""
        return _card(lambda: failures_card(lengths.failures(self.gallery.find(run), first, second)))

    def raced(self, run: str, problem: str) -> str:
        """The model against plain Python."""
        return _card(lambda: race_card(race.race(self.gallery.find(run), problem)))


def _on(begins: Callable[..., Any], does: Callable[..., Any], inputs: Any, outputs: Any) -> None:
    """Let an event do something; what is dragged or typed quickly is answered for its last value."""
    begins(
        does,
        inputs,
        outputs,
        show_progress="hidden",
        trigger_mode="always_last",
        api_visibility="private",
        **_ONE_AT_A_TIME,
    )


def _card(make: Callable[[], Markup]) -> Markup:
    """What is made, or in one line why it is not."""
    try:
        return make()
    except AbacistError as error:
        return alert(str(error))


def _html(content: str, name: str, js_on_load: str | None = None) -> gr.HTML:
    return gr.HTML(
        content,
        elem_id=name,
        elem_classes=["abacist"],
        apply_default_css=False,
        js_on_load=js_on_load,
        padding=False,
    )


def _header(shown_run: ShownRun) -> Markup:
    """What the run is, and what it is worth."""
    trained = random_problems.trained_digits(shown_run)
    described = (
        f"{shown_run.name}: recipe {shown_run.run.recipe.name}, "
        f"{shown_run.trained_model.model.num_parameters:,} parameters"
        + (f", trained on at most {trained:,} digits" if trained is not None else "")
        + ". Every digit below is written by this model."
    )
    return together([element("h1", "abacist"), element("p", described), verdict(shown_run.records)])


def _example(shown_run: ShownRun) -> str:
    """A problem to begin with, the same every time."""
    return random_problems.drawn(
        shown_run, _first_digits(shown_run), torch.Generator().manual_seed(0)
    )


def _first_digits(shown_run: ShownRun) -> int | None:
    trained = random_problems.trained_digits(shown_run)
    return None if trained is None else min(_FIRST_DIGITS, trained)


def _digits(shown_run: ShownRun) -> dict[str, Any]:
    """The slider of lengths; there is none where digits are no measure of the task."""
    longest = random_problems.longest_drawn(shown_run)
    return {
        "minimum": 1,
        "maximum": longest or 1,
        "value": _first_digits(shown_run) or 1,
        "label": "Digits: draw a problem of this length",
        "visible": longest is not None,
    }


def _broken(shown_run: ShownRun, off: list[str], way: str) -> Markup:
    described = switched_off.breakage(shown_run, off, way)
    return element(
        "p",
        f"Without {', '.join(described.off)}: {described.without} of test problems right; with all parts "
        f"{described.whole}.",
        role="status",
    )


_GRID_TITLE = element("h2", "Every pair of lengths")


def _grid(shown_run: ShownRun) -> Markup:
    """The stored grid, or why there is none."""
    why = lengths.obstacle(shown_run)
    if why is not None:
        return together([_GRID_TITLE, element("p", why, class_="muted")])
    stored = lengths.stored_grid(shown_run)
    if stored is not None:
        return together([_GRID_TITLE, grid_card(shown_run.name, stored)])
    described = (
        "This run's scorecard has no grid. Score one of few problems here, or all of it with "
        f"`abacist score {shown_run.run.path} --suite grid`."
    )
    return together([_GRID_TITLE, element("p", prose(described), class_="muted")])


def _can_score(shown_run: ShownRun) -> bool:
    return lengths.obstacle(shown_run) is None and lengths.stored_grid(shown_run) is None


def _vectors(shown_run: ShownRun) -> Markup:
    title = element("h2", "The digits' vectors while training")
    return together([title, vectors_card(shown_run.name, vectors.vectors(shown_run))])


def _how() -> dict[str, Any]:
    """How the page is served and what it looks like, for `launch`."""
    script = (_HERE / "page.js").read_text(encoding="utf-8")
    styles = (path.read_text(encoding="utf-8") for path in (CHARTS_STYLE, _HERE / "page.css"))
    return {
        "theme": _theme(),
        # Not as Gradio's `css`, which would put the palettes of dark and print out of force.
        "head": f"<style>{''.join(styles)}</style><script>{script}</script>",
        "footer_links": [],
        "quiet": True,
        "enable_monitoring": False,
        "prevent_thread_lock": True,
        "ssr_mode": False,
    }


def _theme() -> gr.themes.Base:
    """Gradio's plainest, with fonts that are there and colours of level AA, for which its own are too pale."""
    return gr.themes.Base(
        primary_hue="blue",
        neutral_hue="slate",
        font=("system-ui", "-apple-system", "Segoe UI", "Roboto", "sans-serif"),
        font_mono=("ui-monospace", "SFMono-Regular", "Menlo", "Consolas", "monospace"),
    ).set(
        button_primary_background_fill="#2f5f9e",
        button_primary_background_fill_hover="#264d80",
        button_primary_background_fill_dark="#2f5f9e",
        button_primary_background_fill_hover_dark="#3a6fb5",
        body_text_color_subdued="*neutral_600",
        body_text_color_subdued_dark="*neutral_300",
        slider_color="#2f5f9e",
        slider_color_dark="#86b4f7",
    )


def _check_address(host: str | None, port: int | None) -> None:
    """Refuse an address that is not this machine's, or a port that is taken."""
    if host is None:
        return
    try:
        with socket.create_server((host, port or 0)):
            pass
    except OSError as error:
        where = host if port is None else f"{host}, port {port}"
        raise UserError(
            f"no page can be served at {where}: {error.strerror or error}. "
            "Try --host 127.0.0.1 and another --port."
        ) from error
