"""Gradio, imported without its side effects.

By default it reports every start to its makers, recomputes statistics of all requests for each
request, and writes type stubs next to its sources on import, which doubles the time of the import.
"""

import contextlib
import inspect
import os
from collections.abc import Iterator
from typing import Any

__all__ = ["ClampedSlider", "LRUCache", "api", "gr"]

# Gradio reads these variables on import.
os.environ["GRADIO_ANALYTICS_ENABLED"] = "False"
os.environ["GRADIO_ANALYTICS_CACHE_FREQUENCY"] = "1000000000"
os.environ["GRADIO_ANALYTICS_MAX_EVENTS"] = "1000"


@contextlib.contextmanager
def _without_type_stubs() -> Iterator[None]:
    """Hide the sources of classes during the import: Gradio writes no stubs if it finds no source."""
    getfile = inspect.getfile

    def getfile_without_classes(object: Any) -> str:
        if isinstance(object, type):
            raise OSError(f"the source of {object} is hidden")
        return getfile(object)

    inspect.getfile = getfile_without_classes
    try:
        yield
    finally:
        inspect.getfile = getfile


with _without_type_stubs():
    import gradio as gr
    from gradio.events import api
    from gradio.utils import LRUCache

    class ClampedSlider(gr.Slider):
        """A slider that takes a typed number beyond its ends for the nearer end.

        Gradio's own prints a traceback on the server for it.
        """

        is_template = True  # Gradio's name for a class that looks like its base.

        def preprocess(self, payload: float) -> float:
            """Return a number between both ends, and the lower end for what is no number."""
            is_number = isinstance(payload, int | float) and payload == payload
            number = payload if is_number else self.minimum
            return super().preprocess(min(max(number, self.minimum), self.maximum))
