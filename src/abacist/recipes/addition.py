"""Recipes that add and subtract."""

from dataclasses import replace

from abacist.data.config import SplitConfig
from abacist.formats.config import FORMATS
from abacist.models.config import POSITIONS, ModelConfig
from abacist.recipes.recipe import Recipe
from abacist.scoring.config import ScoringConfig
from abacist.tasks.config import ArithmeticConfig
from abacist.training.config import TrainingConfig


def add() -> Recipe:
    """Adds numbers of every length, certified, after training on at most 10 digits.

    Cost: 13,676 parameters, about 5 seconds of training on one core.
    Promise: certified in 10 of 10 seeds (results/add.json).
    """
    return Recipe(
        name="add",
        task=ArithmeticConfig(max_digits=10),
        format=FORMATS["reversed"],
        split=SplitConfig(),
        model=ModelConfig(
            width=32, num_heads=4, mlp_width=128, positions=POSITIONS["place-relative"]
        ),
        training=TrainingConfig(num_steps=900, batch_size=128, learning_rate=1e-2),
        scoring=ScoringConfig(),
    )


def add_tiny() -> Recipe:
    """The smallest recipe that earns the certificate; `studies/smallest_adder.py` finds smaller models.

    Cost: 338 parameters, about 2 minutes of training on one core.
    Promise: certified in 10 of 10 seeds (results/add-tiny.json).

    Trained on at most 5 digits: a receptive field covers two columns, so every context occurs in sums of
    4 digits, and shorter lines make more steps per second. A model of this size now and then begins
    badly, so three beginnings are compared, and now and then it ends with a few wrong neighbourhoods, which
    rounds of repairs train away.
    """
    base = add()
    return replace(
        base,
        name="add-tiny",
        task=ArithmeticConfig(max_digits=5),
        model=ModelConfig(
            width=4,
            num_heads=2,
            head_width=2,
            mlp_width=16,
            norm="rms",
            biases=("mlp-hidden",),
            positions=POSITIONS["place-relative"],
        ),
        training=TrainingConfig(
            num_steps=12_000,
            batch_size=256,
            learning_rate=2e-2,
            weight_decay=0.0,
            num_beginnings=3,
            repair_rounds=8,
            repair_rate=0.25,
            validate_every=1_000,
            checkpoint_every=1_000,
        ),
    )


def add_tiny_relu() -> Recipe:
    """`add-tiny` with ReLU, for the theorem in Coq (`formal/`), whose interval arithmetic has no GELU.

    Cost: 338 parameters, about 89 seconds of training on one core.
    Promise: certified in 8 of 10 seeds (results/add-tiny-relu.json).
    """
    base = add_tiny()
    return replace(base, name="add-tiny-relu", model=replace(base.model, activation="relu"))


def add_many() -> Recipe:
    """Adds two or more numbers, however many, each of every length, certified.

    Cost: 13,756 parameters, about 21 seconds of training on one core.
    Promise: certified in 10 of 10 seeds (results/add-many.json).

    Trained on 2 to 10 numbers of at most 5 digits, written as one addition after the other. A line
    has about fifty tokens to predict, so a batch needs only a few lines.
    """
    base = add()
    return replace(
        base,
        name="add-many",
        task=ArithmeticConfig(max_operands=10, max_digits=5),
        format=FORMATS["running-sums"],
        model=replace(base.model, positions=POSITIONS["place-row-relative"]),
        training=replace(base.training, num_steps=2_000, batch_size=16, validate_every=500),
        scoring=ScoringConfig(longest=20),
    )


def subtract() -> Recipe:
    """Subtracts numbers of every length, including differences below 0, certified.

    Cost: 13,692 parameters, about 13 seconds of training on one core.
    Promise: certified in 10 of 10 seeds (results/subtract.json).

    A result below 0 is written as its ten's complement. The first digit of `-22` depends on which
    number is larger, and so on digits arbitrarily far away; the first digit of the complement `78-`
    depends only on its own column.
    """
    base = add()
    return replace(
        base,
        name="subtract",
        task=ArithmeticConfig(operations=("-",), max_digits=10),
        format=FORMATS["complement"],
        model=replace(base.model, positions=POSITIONS["place-row-relative"]),
        training=replace(base.training, num_steps=2_000),
    )
