"""Fixtures that load the programs of `studies/`."""

import importlib.util
import sys
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def studies():
    return Path(__file__).parents[2] / "studies"


@pytest.fixture(scope="session")
def load_study(studies):
    """Return a function that imports a program by name, with `studies/` on the path as when it is run."""

    def load(name):
        specification = importlib.util.spec_from_file_location(name, studies / f"{name}.py")
        module = importlib.util.module_from_spec(specification)
        sys.path.insert(0, str(studies))
        try:
            specification.loader.exec_module(module)
        finally:
            sys.path.remove(str(studies))
        return module

    return load
