"""Modules that tests of exported files need, and that an environment without all test extras lacks."""

import importlib
import os

import pytest


def needed(*modules: str) -> None:
    """Skip a test module without these modules, unless ABACIST_NEEDS_EXPORTS is set."""
    for name in modules:
        if os.environ.get("ABACIST_NEEDS_EXPORTS"):
            importlib.import_module(name)
        else:
            pytest.importorskip(name)
