"""Gradio, imported without what it does besides.

It tells its makers of every start, makes statistics of all requests anew for each of them, and
writes type stubs beside its sources whenever it is imported, which takes as long as all the rest.
"""

import contextlib
import inspect
import os
from collections.abc import Iterator
from typing import Any

__all__ = ["api", "gr"]

# Read when it is imported.
os.environ["GRADIO_ANALYTICS_ENABLED"] = "False"
os.environ["GRADIO_ANALYTICS_CACHE_FREQUENCY"] = "1000000000"


@contextlib.contextmanager
def _without_type_stubs() -> Iterator[None]:
    """Stubs are left alone for a class whose source is not found, so for this while none is."""
    getfile = inspect.getfile

    def getfile_of_no_class(object: Any) -> str:
        if isinstance(object, type):
            raise OSError(f"the source of {object} is not asked for")
        return getfile(object)

    inspect.getfile = getfile_of_no_class
    try:
        yield
    finally:
        inspect.getfile = getfile


with _without_type_stubs():
    import gradio as gr
    from gradio.events import api
