"""Modules that tests of exported files need, and that an environment without all test extras lacks."""

import importlib.util
import os

import pytest


def needed(*modules: str) -> None:
    """Skip a test module without these modules, unless ABACIST_NEEDS_EXPORTS is set.

    They are not imported: every process of a test run collects all tests, and each of these modules
    takes seconds.
    """
    missing = [name for name in modules if importlib.util.find_spec(name) is None]
    if missing and not os.environ.get("ABACIST_NEEDS_EXPORTS"):
        pytest.skip(f"not installed: {', '.join(missing)}", allow_module_level=True)
