"""What every export starts from: a run whose function can be written down in a few lines.

That is a causal decoder with relative biases inside windows, before whose sublayers the residual stream
is normalised, for sums or differences of two numbers: the models of `docs/model-definition.md`.

>>> exportable = of_run(abacist.load("runs/add"), "html")
>>> exportable.certificate.neighbourhoods
24518
"""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass

from abacist.certificates.record import Certificate
from abacist.errors import ConfigurationError
from abacist.formats.config import FORMATS
from abacist.models.config import ModelConfig
from abacist.recipes.recipe import Recipe
from abacist.reports import run_records
from abacist.runs.run import Run
from abacist.tasks.config import ArithmeticConfig
from abacist.training import checkpoint

ONLY_SUMS = frozenset({"adderboard"})
"""Targets that know no other operation."""
_FORMATS = {"+": "reversed", "-": "complement"}
"""The format in which an operation is exported."""
_WINDOWS = (("place", (0, 1)), ("row", (-2, 0)))
"""Coordinates and windows of the position schemes; the second one may be left out."""
_EPSILONS = {"layer": 1e-5, "rms": 1e-6}


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
    def config(self) -> ModelConfig:
        return self.run.recipe.model

    @property
    def task(self) -> ArithmeticConfig:
        assert isinstance(self.run.recipe.task, ArithmeticConfig)
        return self.run.recipe.task

    @property
    def operation(self) -> str:
        """`+` or `-`."""
        return self.task.operations[0]

    @property
    def epsilon(self) -> float:
        """The number under the root of a normalisation."""
        return self.config.norm_epsilon or _EPSILONS[self.config.norm]

    @property
    def windows(self) -> list[tuple[str, int, int]]:
        """Coordinate, lowest and highest difference of each position scheme."""
        windows: list[tuple[str, int, int]] = []
        for scheme in self.config.positions:
            assert scheme.window is not None
            windows.append((scheme.coordinate, *scheme.window))
        return windows

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
        objection = (
            damages[0] if damages else f"there is no certificate. Type abacist prove {run.path}."
        )
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
    only_sums = target in ONLY_SUMS
    for obstacle in _obstacles(recipe, only_sums):
        raise ConfigurationError(
            f"--to {target} cannot express the recipe {recipe.name}: {obstacle}. It can express "
            f"add, add-tiny{'' if only_sums else ', subtract'}, and variants of them in width."
        )


def _obstacles(recipe: Recipe, only_sums: bool) -> Iterator[str]:
    """Yield a clause for each setting that cannot be exported, with its value and what can be."""
    task, model = recipe.task, recipe.model
    possible = (("+",),) if only_sums else (("+",), ("-",))
    if not isinstance(task, ArithmeticConfig) or task.operations not in possible:
        operations = getattr(task, "operations", None)
        yield (
            f"its task must be sums{'' if only_sums else ' or differences'} of two numbers, "
            f"got {task.kind}" + (f" with {','.join(operations)}" if operations else "")
        )
        return
    if task.max_operands != 2:
        yield f"task.max_operands must be 2, got {task.max_operands}"
    name = _FORMATS[task.operations[0]]
    if recipe.format != FORMATS[name]:
        yield f"its format must be {name}, got another one of the kind {recipe.format.kind}"
    required = {
        "direction": "causal", "num_layers": 1, "recurrences": 1, "injection": "none",
        "initial_state": "input", "norm_order": "pre", "embedding_norm": False, "final_mlp": False,
        "final_norm": True, "query_key_norm": False, "length_scaling": False,
    }  # fmt: skip
    for setting, value in required.items():
        if getattr(model, setting) != value:
            yield f"model.{setting} must be {value}, got {getattr(model, setting)}"
    if model.activation not in ("relu", "gelu"):
        yield f"model.activation must be relu or gelu, got {model.activation}"
    for number, scheme in enumerate(model.positions):
        if scheme.encoding != "relative" or scheme.window is None:
            yield (
                f"model.positions.{number} must be a relative bias with a window, got "
                f"{scheme.encoding}{'' if scheme.window else ' without a window'}"
            )
    windows = tuple((scheme.coordinate, scheme.window) for scheme in model.positions)
    if windows not in (_WINDOWS[:1], _WINDOWS):
        described = ", ".join(f"{name} {window}" for name, window in windows) or "none"
        yield (
            "model.positions must have a window of places 0,1 and perhaps one of rows -2,0, "
            f"got {described}"
        )
