"""A recipe for sums of four-digit numbers with spaces, trained in one spacing and tested in all."""

from abacist.data.config import SplitConfig
from abacist.formats.config import PlainFormatConfig
from abacist.models.config import POSITIONS, ModelConfig
from abacist.recipes.recipe import Recipe
from abacist.scoring.config import ScoringConfig
from abacist.tasks.config import ArithmeticConfig
from abacist.training.config import TrainingConfig


def spaced() -> Recipe:
    """Adds four-digit numbers in any spacing, trained on `1234 + 5678 =` alone.

    Cost: 13,740 parameters, about 15 seconds of training on one core.
    Promise: 0 of 10,000 test problems wrong in each of 3 seeds (results/spaced.json), in the trained spacing,
    in `1 234 + 5 678=`, without spaces, and with spaces at random.

    A published notebook trains a GPT-2 of 926,080 parameters on the same problems in the same
    spacing. Nearly all of its answers are right, but none in `1 234 + 5 678=`, because a space moves all
    later digits to other positions. Here, the model knows the place of each digit in its number and
    attends to its own column and the next. A space belongs to no column and is not attended to. The
    answer is written least significant digit first.
    """
    return Recipe(
        name="spaced",
        task=ArithmeticConfig(operand_digits=(4, 4), sampling="carry-chains"),
        format=PlainFormatConfig(operand_order="usual", spaces="around"),
        split=SplitConfig(),
        model=ModelConfig(
            width=32, num_heads=4, mlp_width=128, positions=POSITIONS["place-relative"]
        ),
        training=TrainingConfig(num_steps=1_500, batch_size=128, learning_rate=1e-2),
        scoring=ScoringConfig(),
    )
