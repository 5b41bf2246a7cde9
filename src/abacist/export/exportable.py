"""The common input of all exports, a run with its certificate, and the recipes that a target can express.

ONNX can express every model, and transformers every decoder of a plain format. The other targets show
the whole function in a few lines, so they take only the models of `docs/model-definition.md`: causal
pre-norm decoders of one layer with relative biases inside windows.

>>> exportable = of_run(abacist.load("runs/add"), "html")
>>> exportable.certificate.neighbourhoods
24518
"""

import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from abacist import extensions
from abacist.certificates.record import Certificate
from abacist.errors import ConfigurationError
from abacist.formats.config import FORMATS
from abacist.models.config import ModelConfig
from abacist.models.encoding_kinds import ENCODINGS
from abacist.recipes.recipe import Recipe
from abacist.reports import run_records
from abacist.runs.directory import read_run_json
from abacist.runs.run import Run
from abacist.tasks.config import ArithmeticConfig, SortingConfig
from abacist.training import checkpoint

_Windows = tuple[tuple[str, tuple[int, int] | None], ...]
"""Coordinate and window of each position scheme; None for a scheme without a window."""
_COLUMN_WINDOWS = (("place", (0, 1)), ("row", (-2, 0)))
_DIVISION_WINDOWS = (("row", (-2, 0)), ("place", (0, 2)), ("step", (0, 2)))
_LAYOUTS: dict[str, tuple[str, tuple[_Windows, ...]]] = {
    "+": ("reversed", (_COLUMN_WINDOWS[:1], _COLUMN_WINDOWS)),
    "-": ("complement", (_COLUMN_WINDOWS[:1], _COLUMN_WINDOWS)),
    "*": ("long-multiplication", ((("place", (0, 1)), ("row", (-1, 0))),)),
    "//": ("non-restoring-division", (_DIVISION_WINDOWS,)),
    "%": ("non-restoring-division", (_DIVISION_WINDOWS,)),
    "sort": ("insertion-sort", ((("row", (0, 0)), ("place", (0, 0)), ("step", (0, 0))),)),
}
"""For each operation its format, and the windows that its position schemes may have."""
_OPERATIONS = {"html": tuple(_LAYOUTS), "torch": ("+", "-"), "adderboard": ("+",)}
"""Operations that a target can express, for targets that show the whole function in a few lines."""
_VARIANTS = "variants of them in width, heads, activation, normalisation and biases"
_EXPRESSIBLE = {
    "html": (
        f"add, add-tiny, subtract, multiply, divide, modulo, sort, calculator, and {_VARIANTS}"
    ),
    "torch": f"add, add-tiny, subtract, and {_VARIANTS}",
    "adderboard": f"add, add-tiny, and {_VARIANTS}",
    "transformers": "decoders of a plain format, such as add, subtract, spaced and looped-abacus-small",
}
"""What a target can express, for targets that cannot express every recipe."""


@dataclass(frozen=True)
class Exportable:
    """A run that can be exported, with the weights that its certificate speaks of."""

    run: Run
    weights: bytes
    """Content of `model.safetensors` in the checkpoint that was chosen."""
    certificate: Certificate | None
    """The certificate of these weights; None if there is none, or if it speaks of other weights."""
    objection: str
    """Why there is no certificate; empty if there is one."""

    @property
    def extensions(self) -> list[str]:
        """Files and modules that the run needs and that are not part of this package."""
        needed = read_run_json(self.run.directory).get("extensions", [])
        # The directory of a file belongs to the machine of the training.
        return [Path(extension["source"]).name for extension in needed]

    @property
    def config(self) -> ModelConfig:
        return self.run.recipe.model

    @property
    def operations(self) -> tuple[str, ...]:
        """Operations of the task, `sort` among them; several only for divisions and a calculator."""
        return _operations(self.run.recipe)

    @property
    def operation(self) -> str:
        """`+` or `-`, for targets that can express only these."""
        return self.operations[0]

    @property
    def is_calculator(self) -> bool:
        """Whether each line begins with a token that says which notation it is in."""
        return self.run.recipe.format.kind == "calculator"

    @property
    def most_numbers(self) -> int:
        """Number of numbers in the longest problem."""
        task = self.run.recipe.task
        assert isinstance(task, (ArithmeticConfig, SortingConfig))
        return task.max_operands if isinstance(task, ArithmeticConfig) else task.max_numbers

    @property
    def most_digits(self) -> int:
        """Number of digits of the longest operands in training."""
        task = self.run.recipe.task
        assert isinstance(task, (ArithmeticConfig, SortingConfig))
        return task.longest_operand if isinstance(task, ArithmeticConfig) else task.max_digits

    @property
    def windows(self) -> list[tuple[str, int, int]]:
        """Coordinate, lowest and highest difference of each position scheme."""
        windows: list[tuple[str, int, int]] = []
        for scheme in self.config.positions:
            assert scheme.window is not None
            windows.append((scheme.coordinate, *scheme.window))
        return windows

    @property
    def shared_objection(self) -> str:
        """`objection` for files that travel: it names no directory of the machine that made them."""
        # Only whole words are paths: a run may be called `add`, or `.` where it is the current directory.
        path = rf"(?<![^\s'\"]){re.escape(str(self.run.path))}"
        without_files = re.sub(f"{path}/", "", self.objection)
        return re.sub(rf"{path}(?=['\".,:;]*(\s|$))", "RUN", without_files)

    @property
    def weights_sha256(self) -> str:
        """SHA-256 of `model.safetensors`, in hexadecimal."""
        return hashlib.sha256(self.weights).hexdigest()


def of_run(run: Run, target: str) -> Exportable:
    """Return a run with its certificate, ready to be exported.

    Raises `ConfigurationError` if its recipe cannot be expressed in `target`.
    """
    check_expressible(run.recipe, target)
    assert run.directory.checkpoint is not None  # a run that was loaded has one
    weights = checkpoint.read(run.directory.checkpoint)
    damages: list[str] = []
    certificate = run_records.read_certificate(run.directory, damages, run.identity)
    if certificate is None:
        proof = extensions.command("prove", str(run.path))
        objection = damages[0] if damages else f"there is no certificate. Type {proof}."
    else:
        objection = "" if certificate.certified else certificate.reason
    return Exportable(
        run,
        weights.contents["model.safetensors"],
        None if objection else certificate,
        objection,
    )


def check_expressible(recipe: Recipe, target: str) -> None:
    """Raise `ConfigurationError` if models of a recipe cannot be expressed in a target.

    The message names the setting, its value, and recipes that can be expressed.
    """
    if target not in _EXPRESSIBLE:
        return
    obstacles = (
        _obstacles(recipe, _OPERATIONS[target])
        if target in _OPERATIONS
        else _obstacles_of_plain(recipe)
    )
    for obstacle in obstacles:
        raise ConfigurationError(
            f"--to {target} cannot express the recipe {recipe.name}: {obstacle}. It can express "
            f"{_EXPRESSIBLE[target]}. Type --to onnx, which can express every recipe."
        )


def _operations(recipe: Recipe) -> tuple[str, ...]:
    """Return the operations of a recipe, `sort` among them; none for a task of another kind."""
    if isinstance(recipe.task, ArithmeticConfig):
        return recipe.task.operations
    return ("sort",) if isinstance(recipe.task, SortingConfig) else ()


def _obstacles_of_plain(recipe: Recipe) -> Iterator[str]:
    """Yield a clause for each setting that keeps a model from calculating its own coordinates."""
    if recipe.format.kind != "plain":
        yield f"its format must be plain, got {recipe.format.kind}"
    if recipe.model.direction != "causal":
        yield f"model.direction must be causal, got {recipe.model.direction}"
    for number, scheme in enumerate(recipe.model.positions):
        if scheme.encoding in ENCODINGS.origins:
            yield (
                f"model.positions.{number}.encoding must be built in, got {scheme.encoding} "
                "of an extension"
            )


def _obstacles(recipe: Recipe, possible: tuple[str, ...]) -> Iterator[str]:
    """Yield a clause for each setting that cannot be exported, with its value and what can be."""
    task, model = recipe.task, recipe.model
    operations = _operations(recipe)
    is_calculator = recipe.format.kind == "calculator"
    # Lines of // and % differ only in the operator.
    is_one = len(operations) == 1 or operations == ("//", "%") or is_calculator
    if not is_one or not set(operations) <= set(possible):
        yield (
            f"its task must be one of {' '.join(possible)}, got {task.kind}"
            + (f" with {','.join(operations)}" if operations else "")
        )
        return
    if isinstance(task, ArithmeticConfig) and task.signed:
        yield "task.signed must be false, got true"
    if isinstance(task, ArithmeticConfig) and task.max_operands != 2:
        yield f"task.max_operands must be 2, got {task.max_operands}"
    name, possible_windows = _LAYOUTS[operations[0]]
    if is_calculator and possible == tuple(_LAYOUTS):
        name, possible_windows = "calculator", (_DIVISION_WINDOWS,)
    if recipe.format != FORMATS[name]:
        yield f"its format must be {name}, got another one of the kind {recipe.format.kind}"
    required = {
        "direction": "causal", "num_layers": 1, "recurrences": 1, "injection": "none",
        "initial_state": "input", "norm_order": "pre", "query_key_norm": False,
        "length_scaling": False,
    }  # fmt: skip
    for setting, value in required.items():
        if getattr(model, setting) != value:
            yield f"model.{setting} must be {value}, got {getattr(model, setting)}"
    for number, scheme in enumerate(model.positions):
        if scheme.encoding != "relative" or scheme.window is None:
            yield (
                f"model.positions.{number} must be a relative bias with a window, got "
                f"{scheme.encoding}{'' if scheme.window else ' without a window'}"
            )
    windows = tuple((scheme.coordinate, scheme.window) for scheme in model.positions)
    if windows not in possible_windows:
        yield (
            f"model.positions must have the windows {_described(possible_windows[-1])}, "
            f"got {_described(windows)}"
        )


def _described(windows: _Windows) -> str:
    return ", ".join(f"{name} {window}" for name, window in windows) or "none"
