"""The progress of a training below the cell of a notebook that started it: a bar, loss and accuracy.

>>> abacist.train("add")                      # ██████ 750 of 900 steps, loss 0.0021, …
>>> abacist.train("add", progress=False)      # silent
"""

import html
import sys
import time
from typing import Any

from abacist.intervals import percent
from abacist.training.config import TrainingConfig
from abacist.training.loop import Forwarding, Observer
from abacist.training.metrics import Metrics

_SECONDS_BETWEEN_UPDATES = 0.2
_WIDTH = 30


def is_notebook() -> bool:
    """Whether this Python is the kernel of a notebook, which has imported IPython."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    return getattr(shell, "kernel", None) is not None


class NotebookProgress(Forwarding):
    """Shows the progress of a training in a notebook, and passes every event on."""

    def __init__(self, config: TrainingConfig, inner: Observer) -> None:
        """Show the steps of a training as a full bar, which a round of repairs makes longer."""
        super().__init__(inner)
        self.config = config
        self.step, self.loss = 0, ""
        self.accuracy = ""
        self._display: Any = None
        self._begin = self._shown = time.monotonic()

    def on_beginning_step(self, number: int, step: int, loss: float) -> None:
        self.step, self.loss = step, f"beginning {number + 1}, loss {loss:.4f}"
        self._show_now_and_then()
        super().on_beginning_step(number, step, loss)

    def on_start(self, parameters: int, threads: int, step: int) -> None:
        self.step = step
        self._show()
        super().on_start(parameters, threads, step)

    def on_step(self, step: int, loss: float) -> None:
        self.step, self.loss = step, f"loss {loss:.4f}"
        self._show_now_and_then()
        super().on_step(step, loss)

    def on_metrics(self, metrics: Metrics) -> None:
        shares = {"token accuracy": metrics.token_accuracy, "exact match": metrics.exact_match}
        self.accuracy = ", ".join(
            f"{name} {percent(share.value)}"
            for name, share in shares.items()
            if share is not None and share.value is not None
        )
        self.accuracy += f" of {metrics.exact_match.n:,} validation problems"
        self._show()
        super().on_metrics(metrics)

    @property
    def text(self) -> str:
        """The state in one line: steps, seconds, the last loss and the last validation."""
        seconds = time.monotonic() - self._begin
        steps = f"{self.step:,} of {self.config.end_after(self.step):,} steps, {seconds:.0f} s"
        return ", ".join(filter(None, [steps, self.loss, self.accuracy]))

    def _show_now_and_then(self) -> None:
        if time.monotonic() - self._shown >= _SECONDS_BETWEEN_UPDATES:
            self._show()

    def _show(self) -> None:
        """Draw the bar, or draw it again in its place."""
        from IPython.display import display  # type: ignore[import-not-found]

        self._shown = time.monotonic()
        share = self.step / max(1, self.config.end_after(self.step))
        full = round(_WIDTH * share)
        data = {
            "text/plain": f"{'█' * full}{'░' * (_WIDTH - full)} {self.text}",
            "text/html": f'<progress value="{share:.4f}" max="1"></progress> {html.escape(self.text)}',
        }
        if self._display is None:
            self._display = display(data, raw=True, display_id=True)
        else:
            self._display.update(data, raw=True)
