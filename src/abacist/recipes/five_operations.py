"""Five operations in one small model, each worked on paper."""

from abacist.data.config import SplitConfig
from abacist.formats.config import FORMATS
from abacist.models.config import CoordinateName, ModelConfig, PositionScheme
from abacist.recipes.recipe import Recipe
from abacist.scoring.config import ScoringConfig
from abacist.tasks.config import ArithmeticConfig
from abacist.training.config import TrainingConfig


def five_operations() -> Recipe:
    """Adds, subtracts, multiplies, divides and takes remainders of numbers up to 999.

    Cost: 75,992 parameters, about 17 minutes of training on one core.
    Promise: of all 4,998,000 problems 65 wrong (one seed, results/five-operations.json): 52 products and
    13 remainders, no sum, no difference and no quotient.

    A published notebook trains 10,650,624 parameters on these 4,998,000 problems with the carries
    of each written out; remainders are what such a model never quite learns. Here the work is
    written so that each token follows from a few near ones (formats/worked.py). What is left of a
    dividend stands two rows above the row that goes on with it, and one layer learns everything
    but that; two learn it too. Heads that begin alike take long to share the work, so their
    biases begin far apart. Products are learned last, and of them the rarest carries: so they weigh most,
    and half of all problems are rich in nines.
    """

    def near(coordinate: CoordinateName, window: tuple[int, int]) -> PositionScheme:
        return PositionScheme(
            encoding="relative", coordinate=coordinate, window=window, init_std=2.0
        )

    return Recipe(
        name="five-operations",
        task=ArithmeticConfig(
            operations=("+", "-", "*", "//", "%"),
            weights=(0.05, 0.08, 0.47, 0.20, 0.20),
            max_digits=3,
            sampling="nines",
        ),
        format=FORMATS["worked"],
        split=SplitConfig(),
        model=ModelConfig(
            width=64,
            num_heads=4,
            mlp_width=128,
            num_layers=2,
            positions=(near("place", (0, 1)), near("row", (-2, 1)), near("step", (-1, 0))),
        ),
        training=TrainingConfig(
            num_steps=8_000,
            batch_size=128,
            learning_rate=5e-3,
            validate_every=500,
            checkpoint_every=500,
        ),
        scoring=ScoringConfig(),
    )
