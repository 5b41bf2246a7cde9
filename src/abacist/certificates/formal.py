"""The weights of a trained model as source for the Coq development in `formal/`.

`abacist prove RUN --formal formal` writes `formal/Weights.v`, and `make formal` then proves the theorem for
these weights, or fails. A float32 weight is exactly `m / 2^e` with integers `m` and `e`; the file
lists these pairs. It also holds the logits that the package computes in float64 for a few lines,
and Coq checks that the function it speaks of has the same ones.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import torch

from abacist.errors import ConfigurationError
from abacist.formats.config import FORMATS
from abacist.formats.plain import PlainFormat
from abacist.models.config import POSITIONS, ModelConfig, PositionScheme
from abacist.models.teacher_forcing import coordinates_of
from abacist.models.transformer import Transformer
from abacist.scoring.trained_model import TrainedModel
from abacist.tasks.arithmetic import Arithmetic

FILE = "Weights.v"

_COVERED: dict[str, object] = {
    "direction": "causal",
    "num_layers": 1,
    "recurrences": 1,
    "injection": "none",
    "activation": "relu",
    "norm": "rms",
    "norm_epsilon": 0.0,
    "norm_order": "pre",
    "embedding_norm": False,
    "final_mlp": False,
    "final_norm": True,
    "query_key_norm": False,
    "length_scaling": False,
    "biases": ("mlp-hidden",),
    "positions": POSITIONS["place-relative"],
}
"""The settings of a model that `formal/Model.v` and `formal/Line.v` define. Widths and heads are free."""

_TENSORS = {
    "embedding": "embedding.weight",
    "attention_norm": "blocks.0.attention_norm.weight",
    "query": "blocks.0.attention.query.weight",
    "key": "blocks.0.attention.key.weight",
    "value": "blocks.0.attention.value.weight",
    "output": "blocks.0.attention.output.weight",
    "relative": "blocks.0.attention.relative.0.table",
    "mlp_norm": "blocks.0.mlp_norm.weight",
    "up": "blocks.0.mlp.up.weight",
    "up_bias": "blocks.0.mlp.up.bias",
    "down": "blocks.0.mlp.down.weight",
    "final_norm": "final_norm.weight",
    "head": "head.weight",
}
"""Fields of the record `weights` in `formal/Model.v`, with the names of the tensors they hold."""

_SAMPLES = ("0+0", "7+5", "58+967")
_SYMBOLS = {"+": "Plus", "=": "Equals", "<end>": "End", "<start>": "Start"}
_BILLION = 1_000_000_000

_SOURCE = """\
(** The weights of one trained model, and logits that the package computes with them.

    Written by [abacist prove RUN --formal formal]; not to be edited. *)

From Coq Require Import List ZArith.
From Formal Require Import Model Line.
Import ListNotations.
Local Open Scope Z_scope.

(** Every pair (m, e) is the number m / 2^e, which is exactly the weight of the checkpoint. *)
Definition trained : weights dyadic := {{|
{weights}
|}}.

(** Lines, and their logits in billionths, as the package computes them in float64. *)
Definition samples : list (list token * list Z) := [
{samples}
].
"""


def weights_source(trained_model: TrainedModel) -> str:
    """Return the text of `Weights.v`; raise `ConfigurationError` for a model that `formal/` does not cover."""
    check_covered(trained_model)
    model = trained_model.model
    tensors = model.state_dict()
    fields = [
        f"  num_heads := {model.config.num_heads}%nat",
        f"  head_width := {model.config.width_of_head}%nat",
        *(f"  {field} := {_coq(tensors[name].tolist())}" for field, name in _TENSORS.items()),
    ]
    return _SOURCE.format(weights=";\n".join(fields), samples=";\n".join(_samples(trained_model)))


def check_covered(trained_model: TrainedModel) -> None:
    """Raise `ConfigurationError` unless `formal/` defines this model's task, lines and forward pass."""
    task, format, model = trained_model.task, trained_model.format, trained_model.model
    if not (
        isinstance(task, Arithmetic)
        and task.operations == ("+",)
        and task.config.max_operands == 2
        and isinstance(format, PlainFormat)
        and format.config == FORMATS["reversed"]
    ):
        raise ConfigurationError(
            "the Coq development covers sums of two numbers in the format reversed only. "
            "Try abacist train add-tiny-relu."
        )
    for setting, covered in _COVERED.items():
        value = _value(model.config, setting)
        if value != covered:
            raise ConfigurationError(
                f"the Coq development covers model.{setting} {_typed(covered)} only, got "
                f"{_typed(value)}. Try abacist train add-tiny-relu."
            )
    for name, parameter in model.named_parameters():
        if not bool(torch.isfinite(parameter).all()):
            raise ConfigurationError(
                f"the weight {name} is not finite, so it cannot be written as a fraction. "
                "Train again with a lower --training.learning_rate."
            )


def _value(config: ModelConfig, setting: str) -> object:
    """Return the value of a setting, without the parts that matter only during training."""
    if setting == "positions":
        return tuple(replace(scheme, init_std=0.0) for scheme in config.positions)
    return getattr(config, setting)


def _typed(value: object) -> str:
    """A setting as one types it on the command line, or as much of it as fits into a message."""
    if isinstance(value, bool):
        return str(value).lower()
    if not isinstance(value, tuple):
        return str(value)
    if value == POSITIONS["place-relative"]:
        return "place-relative"
    parts = (
        f"{part.encoding} over {part.coordinate}, window {part.window}"
        if isinstance(part, PositionScheme)
        else str(part)
        for part in value
    )
    return " and ".join(parts) or "none"


def _coq(numbers: list[Any]) -> str:
    """A vector as a Coq list of pairs, a matrix as a list of its rows."""
    if isinstance(numbers[0], list):
        return "[\n    {}]".format(";\n    ".join(_coq(row) for row in numbers))
    return "[{}]".format("; ".join(_dyadic(number) for number in numbers))


def _dyadic(number: float) -> str:
    """The pair (m, e) with m / 2^e = number."""
    numerator, denominator = number.as_integer_ratio()
    return f"({numerator}, {denominator.bit_length() - 1})"


@torch.no_grad()
def _samples(trained_model: TrainedModel) -> Iterator[str]:
    """All beginnings of a few right lines, each with the logits after it."""
    model, task, format = trained_model.model, trained_model.task, trained_model.format
    exact = Transformer(model.config, model.embedding.num_embeddings).double()
    exact.load_state_dict(model.state_dict())
    for problem in _SAMPLES:
        problems = task.parse([problem])
        line = format.write(problems, task.answer(problems))
        logits_TV = exact.eval()(line.ids, coordinates_of(line), path="dense")[0]
        tokens = [_token(format.vocabulary.decode([token])) for token in line.ids[0].tolist()]
        for length, logits in enumerate(logits_TV[:-1].tolist(), start=1):
            billionths = "; ".join(str(round(logit * _BILLION)) for logit in logits)
            yield f"  ([{'; '.join(tokens[:length])}],\n   [{billionths}])"


def _token(text: str) -> str:
    """A token as `formal/Line.v` writes it."""
    return _SYMBOLS.get(text, f"Digit {text}")
