import runpy
import sys

import pytest
import torch

import abacist
from abacist import errors
from abacist.certificates.receptive_fields import NotProvable
from abacist.cli import main
from abacist.config_base import InvalidSettings
from abacist.errors import check_between, memory_complaint, nearest
from abacist.runs import training


@pytest.mark.parametrize(
    ("error", "parents"),
    [
        (errors.UserError, (errors.AbacistError,)),
        (errors.ConfigurationError, (errors.UserError, ValueError)),
        (InvalidSettings, (errors.ConfigurationError,)),
        (errors.ProblemError, (errors.UserError, ValueError)),
        (errors.RunError, (errors.UserError,)),
        (errors.CheckpointError, (errors.RunError,)),
        (NotProvable, (errors.AbacistError,)),
        (errors.TrainingDiverged, (errors.AbacistError,)),
        (errors.ProcessLost, (errors.AbacistError,)),
    ],
)
def test_every_error_has_the_parents_that_the_drawn_tree_shows(
    error: type[Exception], parents: tuple[type[Exception], ...]
) -> None:
    assert error.__bases__ == parents


def test_the_drawn_tree_names_every_error() -> None:
    defined, new = {errors.AbacistError}, {errors.AbacistError}
    while new:
        new = {subclass for error in new for subclass in error.__subclasses__()}
        defined |= new
    names = [error.__name__ for error in defined if error.__module__.startswith("abacist.")]
    assert len(names) == 10
    for name in names:
        assert name in (errors.__doc__ or "")


def test_divergence_is_not_a_user_error() -> None:
    assert not issubclass(errors.TrainingDiverged, errors.UserError)


@pytest.mark.parametrize("value", [1, 2.5, 10])
def test_bounds_themselves_are_allowed(value: float) -> None:
    check_between("task.digits", value, 1, 10, 3)


@pytest.mark.parametrize("value", [0, 11, -1, 10.0001, float("nan"), float("inf"), True])
def test_a_value_outside_its_bounds_is_refused(value: float) -> None:
    with pytest.raises(errors.ConfigurationError):
        check_between("task.digits", value, 1, 10, 3)


def test_refusal_names_setting_range_value_and_what_to_type() -> None:
    with pytest.raises(errors.ConfigurationError) as caught:
        check_between("task.max_digits", 0, 1, 1_000_000, 3)
    assert str(caught.value) == (
        "task.max_digits must be 1 to 1,000,000, got 0. Try --task.max_digits 3."
    )


def test_refusal_shows_fractional_bounds_as_a_person_writes_them() -> None:
    with pytest.raises(errors.ConfigurationError, match=r"must be 0\.001 to 0\.5, got 2"):
        check_between("split.test_fraction", 2, 0.001, 0.5, 0.1)


@pytest.mark.parametrize(
    ("typed", "meant"),
    [("model.widht", "model.width"), ("num_layer", "num_layers"), ("ad", "add")],
)
def test_the_closest_known_name_is_suggested(typed: str, meant: str) -> None:
    known = ["model.width", "num_layers", "add", "seed"]
    assert nearest(typed, known) == f"did you mean {meant!r}?"


def test_all_known_names_are_listed_where_none_is_close() -> None:
    assert nearest("zzzzzz", ["add", "multiply"]) == "known: add, multiply."
    settings = ["name", "model.width", "model.norm", "training.num_steps"]
    assert nearest("zzzzzz.qqqqqq", settings) == "known: name, model, training."
    assert nearest("model.qqqqqq", settings) == "known: model.width, model.norm."
    assert "such as 'model.width'" in nearest("model", settings)
    assert nearest("training.wodth", settings) == "known: training.num_steps."
    assert nearest("training.width", settings) == "did you mean 'model.width'?"
    assert nearest("model.norm.a", settings) == "did you mean 'model.norm'?"
    assert nearest("a", []) == "known: nothing."


def test_memory_that_runs_out_is_one_line_that_says_what_to_type(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB.\nDetails")

    monkeypatch.setattr(training, "start", fail)
    assert main(["train", "add", "--out", "never"]) == 1
    assert capsys.readouterr().err == (
        "abacist: out of memory (CUDA out of memory. Tried to allocate 2.00 GiB. Details). Try "
        "--training.micro_batches 4 or a smaller --training.batch_size, and fewer runs side by side.\n"
    )


def test_other_errors_are_no_lack_of_memory() -> None:
    assert memory_complaint(MemoryError()) is not None
    assert memory_complaint(RuntimeError("shapes differ")) is None


def test_windows_is_refused_with_what_to_do(monkeypatch):
    monkeypatch.setattr(sys, "platform", "win32")
    with pytest.raises(ImportError, match=r"Linux and macOS\. On Windows, install it in WSL"):
        runpy.run_path(abacist.__file__)
