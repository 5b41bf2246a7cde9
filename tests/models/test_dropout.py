"""Dropout acts on the configured activations and on nothing else."""

from typing import get_args

import pytest
import torch
from small_models import random_model, random_problems, write
from torch import Tensor

from abacist.models.config import DROPOUT_ON, Dropped, ModelConfig
from abacist.models.teacher_forcing import coordinates_of

LINES = write(random_problems([(4, 5)]))
PLACES = get_args(Dropped)


def logits(*places: Dropped, training: bool = True) -> Tensor:
    model = random_model(dropout=0.5, dropout_on=places).train(training)
    torch.manual_seed(0)
    logits: Tensor = model(LINES.ids, coordinates_of(LINES))
    return logits


def zeros_seen(place: Dropped) -> dict[str, float]:
    """The share of zeros in the output of each dropout, by the activation that it acts on."""
    model = random_model(dropout=0.5, dropout_on=(place,)).train()
    shares = {}
    for name, module in model.named_modules():
        if isinstance(module, torch.nn.Dropout):
            module.register_forward_hook(
                lambda module, inputs, out, name=name: shares.update(
                    {name: (out == 0).double().mean().item()}
                )
            )
    model(LINES.ids, coordinates_of(LINES))
    return shares


@pytest.mark.parametrize("place", PLACES)
def test_each_dropout_changes_a_training_pass_and_no_evaluation_pass(place: Dropped) -> None:
    assert not torch.equal(logits(place), logits())
    assert torch.equal(logits(place, training=False), logits())


@pytest.mark.parametrize(
    ("place", "module"),
    [
        ("embedding", "dropout"),
        ("mlp-hidden", "blocks.0.mlp.dropout"),
        ("outputs", "blocks.0.dropout"),
    ],
)
def test_only_named_activations_are_dropped(place: Dropped, module: str) -> None:
    shares = zeros_seen(place)
    assert shares.pop(module) == pytest.approx(0.5, abs=0.1)
    assert not any(shares.values())


def test_attention_weights_are_dropped_outside_of_the_modules() -> None:
    assert not any(zeros_seen("attention").values())


def test_the_names_are_those_of_gpt2_and_of_the_encoder_layer_of_torch() -> None:
    assert ModelConfig().dropout_on == DROPOUT_ON["gpt2"]
    assert "mlp-hidden" not in DROPOUT_ON["gpt2"]
    assert "embedding" not in DROPOUT_ON["torch"]
