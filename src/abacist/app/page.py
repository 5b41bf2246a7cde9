"""The page: Gradio's controls around the cards that the other modules of this package draw.

    with served(open_gallery(["latest"])) as address: …

Its order is: problem, answer, what the model looked at, certificate; then lengths, race and vectors.
Nothing on it comes from another address: fonts are the system's, scripts and styles are its own.
"""

import contextlib
import socket
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import torch

from abacist import extensions
from abacist.app import lengths, race, random_problems, vectors
from abacist.app.ablation_score import ablation_score
from abacist.app.answer_card import alert, side_by_side
from abacist.app.certificate_card import certificate_card
from abacist.app.composed_answers import any_answer
from abacist.app.composed_card import any_card
from abacist.app.controls import ClampedSlider, LRUCache, api, gr
from abacist.app.grid_card import failures_card, grid_card
from abacist.app.questions import Questions, new_generator
from abacist.app.race_card import race_card
from abacist.app.request_guard import AllowedHosts, RequestGuard, allowed_hosts
from abacist.app.shown_runs import Gallery, ShownRun
from abacist.app.vectors_card import vectors_card
from abacist.errors import AbacistError, UserError
from abacist.reports.html import CHARTS_STYLE
from abacist.reports.html_builder import Markup, element, prose, together

_NOTHING = "nothing"
_FIRST_DIGITS = 6
"""Number of digits of the first problem, unless training had fewer."""
_MAX_WAITING = 200
"""Maximum number of waiting requests; further ones are refused."""
_MAX_SESSIONS = 2 * _MAX_WAITING
"""Maximum number of sessions of which results are kept until they are fetched; the oldest are dropped."""
_ONE_AT_A_TIME = {"concurrency_limit": 1, "concurrency_id": "model"}
"""A model answers one request after the other, whoever asks."""
_WAYS = [("set to 0", "zero"), ("set to its mean", "mean")]
_CELL_CLICKED = """
element.addEventListener("click", (event) => {
  const cell = event.target.closest("button[data-first]");
  if (cell) trigger("click", { first: Number(cell.dataset.first), second: Number(cell.dataset.second) });
});
"""
_EXAMPLE_CLICKED = """
element.addEventListener("click", (event) => {
  const button = event.target.closest("button");
  if (button) trigger("click", { problem: button.dataset.problem ?? null });
});
"""
_PROBLEM_CLICKED = """
element.addEventListener("click", (event) => {
  const button = event.target.closest("button[data-problem]");
  if (button) trigger("click", { problem: button.dataset.problem });
});
"""
_FOLDER = Path(__file__).parent


@contextlib.contextmanager
def served(
    gallery: Gallery, host: str | None = None, port: int | None = None, open_browser: bool = False
) -> Iterator[str]:
    """Serve the page, yield its address, and close it at the end.

    Args:
        host: address to listen on; None for Gradio's setting, which is 127.0.0.1 by default.
        port: None for the first free port from 7860 on.

    Raises `UserError` if the page cannot be served there.
    """
    _check_address(host, port)
    # One core is left to the server.
    torch.set_num_threads(max(1, torch.get_num_threads() - 1))
    page = build(gallery)
    _, address, _ = page.launch(
        server_name=host,
        server_port=port,
        inbrowser=open_browser,
        **_launch_settings(allowed_hosts(host)),
    )
    try:
        yield address.rstrip("/")
    finally:
        page.close(verbose=False)


def wait() -> None:
    """Wait until Ctrl-C is pressed."""
    with contextlib.suppress(KeyboardInterrupt):
        threading.Event().wait()


def build(gallery: Gallery) -> gr.Blocks:
    """Return the page with all its controls, not yet served."""
    handlers, first = _Handlers(gallery), gallery.find(None)
    first_problem = _first_problem(first)
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
        with gr.Row(equal_height=True, elem_id="ask"):
            problem = gr.Textbox(
                first_problem,
                label="Problem",
                max_lines=4,
                scale=4,
                elem_id="problem",
                min_width=200,
            )
            calculate = gr.Button(
                "Calculate", variant="primary", scale=1, elem_id="calculate", min_width=110
            )
        examples = _html(_examples(first), "examples", js_on_load=_EXAMPLE_CLICKED)
        shown = _html(
            handlers.answer(first.name, first_problem, [], "zero", _NOTHING),
            "shown",
            js_on_load=_PROBLEM_CLICKED,
        )
        digits = ClampedSlider(**_digits(first), step=1, elem_id="digits", buttons=[])
        with gr.Accordion("Break it: switch parts of the model off", open=False) as parts:
            with gr.Row():
                off = gr.CheckboxGroup(first.parts, label="Switched off", scale=3, elem_id="off")
                way = gr.Radio(_WAYS, value="zero", label="Switched-off parts are", elem_id="way")
                beside = gr.Radio(
                    [_NOTHING, *gallery.names],
                    value=_NOTHING,
                    label="Beside it, with all parts on",
                    elem_id="beside",
                )
            broken = _html("", "broken")
        certificate = _html(certificate_card(first), "certificate")
        grid = _html(_grid(first), "lengths", js_on_load=_CELL_CLICKED)
        with gr.Row():
            score = gr.Button(
                "Score the grid", elem_id="score", visible=_can_score(first), scale=0, min_width=280
            )
        cell = _html("", "cell")
        race_title = _html(_race_title(first), "race-title")
        with gr.Row():
            race_on = gr.Button(
                "Race with this problem",
                elem_id="race",
                visible=race.is_possible(first),
                scale=0,
                min_width=280,
            )
        raced = _html("", "raced")
        vectors_shown = _html(_vectors(first), "vectors")

        asked = [run, problem, off, way, beside]
        for event in (calculate.click, problem.submit, beside.input):
            _on(event, handlers.answer, asked, shown)
        _on(digits.input, handlers.draw, [run, digits, off, way, beside], [problem, shown])
        for control in (off, way):
            _on(control.input, handlers.switch, asked, [shown, broken])
        _on(shown.click, handlers.step, [run, off, way, beside], [problem, shown])
        _on(examples.click, handlers.example, asked, [problem, off, parts, shown, broken])
        about_run = [header, problem, examples, digits, off, broken, shown, certificate]
        about_run += [grid, score, cell, race_title, race_on, raced, vectors_shown]
        _on(run.input, handlers.change_run, [run, beside], about_run)
        _on(score.click, handlers.score_grid, run, [grid, score])
        _on(grid.click, handlers.show_failures, [run, off, way], cell)
        _on(race_on.click, handlers.run_race, [run, problem, off], raced)
        for name, question in Questions(gallery).all().items():
            api(question, api_name=name, **_ONE_AT_A_TIME)
    page.queue(max_size=_MAX_WAITING)
    # Gradio keeps results that are never fetched: of 2,000 sessions, and their names forever.
    page._queue.pending_messages_per_session = LRUCache(_MAX_SESSIONS)
    page._queue.pending_event_ids_session = LRUCache(_MAX_SESSIONS)
    return page


class _Handlers:
    """The handlers of all controls: from the values of the controls to HTML."""

    def __init__(self, gallery: Gallery) -> None:
        self.gallery = gallery

    def answer(self, run: str, problem: str, off: list[str], way: str, beside: str) -> str:
        """Return the answer, and beside it that of another run or of the same run with all parts."""
        cards = [_card(lambda: any_card(any_answer(self.gallery.find(run), problem, off, way)))]
        if beside != _NOTHING:
            cards.append(_card(lambda: any_card(any_answer(self.gallery.find(beside), problem))))
        return side_by_side(cards)

    def draw(self, run: str, digits: int, off: list[str], way: str, beside: str) -> tuple[Any, str]:
        """Return a new problem with `digits` digits, and its answer."""
        try:
            problem = random_problems.drawn(self.gallery.find(run), int(digits), new_generator())
        except AbacistError as error:
            return gr.skip(), alert(str(error))
        return problem, self.answer(run, problem, off, way, beside)

    def switch(
        self, run: str, problem: str, off: list[str], way: str, beside: str
    ) -> tuple[str, str]:
        """Return the answer with some parts off, and their effect on test problems."""
        answer = self.answer(run, problem, off, way, beside)
        if not off:
            return answer, ""
        return answer, _card(lambda: _effect(self.gallery.find(run), off, way))

    def example(
        self, run: str, problem: str, off: list[str], way: str, beside: str, event: gr.EventData
    ) -> tuple[Any, ...]:
        """Show the example that was clicked; the one without a problem switches a part off."""
        example = event._data.get("problem")
        if isinstance(example, str):
            return (
                example,
                gr.skip(),
                gr.skip(),
                self.answer(run, example, off, way, beside),
                gr.skip(),
            )
        off = self.gallery.find(run).parts[:1]
        answer, effect = self.switch(run, problem, off, way, beside)
        return gr.skip(), off, gr.Accordion(open=True), answer, effect

    def step(
        self, run: str, off: list[str], way: str, beside: str, event: gr.EventData
    ) -> tuple[str, str]:
        """Show the problem that was clicked, of those solved for a function."""
        problem = event._data["problem"]
        return problem, self.answer(run, problem, off, way, beside)

    def change_run(self, run: str, beside: str) -> tuple[Any, ...]:
        """Return everything about another run, with an example of its own."""
        shown_run = self.gallery.find(run)
        problem = _first_problem(shown_run)
        return (
            _header(shown_run),
            problem,
            _examples(shown_run),
            ClampedSlider(**_digits(shown_run)),
            gr.CheckboxGroup(shown_run.parts, value=[]),
            "",
            self.answer(run, problem, [], "zero", beside),
            certificate_card(shown_run),
            _grid(shown_run),
            gr.Button(visible=_can_score(shown_run)),
            "",
            _race_title(shown_run),
            gr.Button(visible=race.is_possible(shown_run)),
            "",
            _vectors(shown_run),
        )

    def score_grid(self, run: str) -> tuple[str, Any]:
        """Score the grid of a run that has none in its scorecard."""
        shown_run = self.gallery.find(run)
        grid = _card(lambda: _grid_card(shown_run, lengths.scored_grid(shown_run)))
        return together([_GRID_TITLE, grid]), gr.Button("Score the grid again")

    def show_failures(self, run: str, off: list[str], way: str, event: gr.EventData) -> str:
        """Return the failures in the cell that was clicked, with the same parts switched off."""
        first, second = event._data.get("first"), event._data.get("second")
        if first is None or second is None:
            return ""
        shown_run = self.gallery.find(run)
        return _card(
            lambda: failures_card(
                lengths.failures(shown_run, first, second, off, way), speaks_of_parts=bool(off)
            )
        )

    def run_race(self, run: str, problem: str, off: list[str]) -> str:
        """Return the race of the model against plain Python, which always runs with all parts."""
        return _card(
            lambda: race_card(race.race(self.gallery.find(run), problem), speaks_of_parts=bool(off))
        )


def _on(event: Callable[..., Any], handler: Callable[..., Any], inputs: Any, outputs: Any) -> None:
    """Handle an event. Of several events in quick succession, only the last one is answered."""
    event(
        handler,
        inputs,
        outputs,
        show_progress="hidden",
        trigger_mode="always_last",
        # Without a name of its own, an event takes that of its handler from the question.
        api_name=f"page_{handler.__name__}",
        api_visibility="private",
        **_ONE_AT_A_TIME,
    )


def _card(draw: Callable[[], Markup]) -> Markup:
    """Return a card, or the error in one line."""
    try:
        return draw()
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
    """The title, and what the run does in one sentence."""
    trained = random_problems.trained_digits(shown_run)
    sentence = (
        f"{shown_run.name}: a transformer with {shown_run.trained_model.model.num_parameters:,} "
        f"parameters, trained with the recipe {shown_run.run.recipe.name}"
        + (f" on numbers of at most {trained:,} digits" if trained is not None else "")
        + ". Type a problem, and watch it calculate."
    )
    return together([element("h1", "abacist"), element("p", sentence)])


def _examples(shown_run: ShownRun) -> Markup:
    """Buttons with problems worth trying, and one that breaks the model."""
    buttons = [
        element("button", label, type="button", data_problem=problem)
        for label, problem in random_problems.examples(shown_run).items()
    ]
    return element(
        "p", "Try: ", *buttons, element("button", "break it", type="button"), class_="buttons"
    )


def _first_problem(shown_run: ShownRun) -> str:
    """Return a problem to begin with, the same every time."""
    digits = None
    if not random_problems.is_sorting(shown_run):
        digits = _first_digits(shown_run)
    return random_problems.drawn(shown_run, digits, torch.Generator().manual_seed(0))


def _first_digits(shown_run: ShownRun) -> int | None:
    trained = random_problems.trained_digits(shown_run)
    return None if trained is None else min(_FIRST_DIGITS, trained)


def _digits(shown_run: ShownRun) -> dict[str, Any]:
    """Return the settings of the slider of lengths, which is hidden if digits do not describe the task."""
    longest = random_problems.longest_drawn(shown_run) or 1
    return {
        "minimum": 1,
        # Gradio refuses a slider without a choice, also a hidden one.
        "maximum": max(2, longest),
        "value": _first_digits(shown_run) or 1,
        "label": "Digits: draw a random problem of this length",
        "visible": longest > 1,
    }


def _effect(shown_run: ShownRun, off: list[str], way: str) -> Markup:
    score = ablation_score(shown_run, off, way)
    return element(
        "p",
        f"Without {', '.join(score.off)}: {score.without} of test problems right; with all parts "
        f"{score.whole}.",
        role="status",
    )


_GRID_TITLE = element("h2", "Every pair of lengths")


def _grid(shown_run: ShownRun) -> Markup:
    """The grid of the scorecard, or why there is none."""
    obstacle = lengths.obstacle(shown_run)
    if obstacle is not None:
        return together([_GRID_TITLE, element("p", obstacle, class_="muted")])
    stored = lengths.stored_grid(shown_run)
    if stored is not None:
        return together([_GRID_TITLE, _grid_card(shown_run, stored)])
    text = (
        "This run's scorecard has no grid. Score a small one here, or all of it with "
        f"`{extensions.command('score', str(shown_run.run.path), '--suite', 'grid')}`."
    )
    return together([_GRID_TITLE, element("p", prose(text), class_="muted")])


def _grid_card(shown_run: ShownRun, grid: lengths.LengthGrid) -> Markup:
    return grid_card(shown_run.name, grid, random_problems.trained_digits(shown_run))


def _can_score(shown_run: ShownRun) -> bool:
    return lengths.obstacle(shown_run) is None and lengths.stored_grid(shown_run) is None


def _race_title(shown_run: ShownRun) -> Markup | str:
    return element("h2", "A race against plain Python") if race.is_possible(shown_run) else ""


def _vectors(shown_run: ShownRun) -> Markup:
    title = element("h2", "The digits' vectors during training")
    return together([title, vectors_card(shown_run.name, vectors.vectors(shown_run))])


def _launch_settings(hosts: AllowedHosts) -> dict[str, Any]:
    """Return the settings of `launch`: how the page is served and what it looks like."""
    script = (_FOLDER / "page.js").read_text(encoding="utf-8")
    styles = (path.read_text(encoding="utf-8") for path in (CHARTS_STYLE, _FOLDER / "page.css"))

    @contextlib.asynccontextmanager
    async def guarded(app: Any) -> AsyncIterator[None]:
        # Middleware that is passed to Gradio would be inside Gradio's own, which answers first.
        app.middleware_stack = RequestGuard(app.middleware_stack, hosts)
        yield

    return {
        "theme": _theme(),
        # Not as Gradio's `css`, which would disable the palettes for dark mode and print.
        "head": f"<style>{''.join(styles)}</style><script>{script}</script>",
        "footer_links": [],
        "quiet": True,
        "enable_monitoring": False,
        "prevent_thread_lock": True,
        "ssr_mode": False,
        "state_session_capacity": _MAX_SESSIONS,
        "app_kwargs": {"lifespan": guarded},
    }


def _theme() -> gr.themes.Base:
    """Gradio's plainest theme, with the system's fonts and colours of contrast level AA."""
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
    """Raise `UserError` for an address that is not this machine's, or a port that is taken."""
    if host is None:
        return
    try:
        with socket.create_server((host, port or 0)):
            pass
    except OSError as error:
        address = host if port is None else f"{host}, port {port}"
        raise UserError(
            f"no page can be served at {address}: {error.strerror or error}. "
            "Try --host 127.0.0.1 and another --port."
        ) from error
