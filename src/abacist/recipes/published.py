"""Published systems with their own hyperparameters, to compare with.

`docs/systems/` describes what each document did, what ours does differently, and the mistakes found in
it. The data is always our own, because the documents' test sets overlap their training sets.
`tests/test_published_recipes.py` compares every recipe with the hyperparameters of its document.
"""

from dataclasses import replace
from typing import Literal

from abacist.data.config import SplitConfig
from abacist.formats.config import FORMATS, CarryTraceFormatConfig, PlainFormatConfig
from abacist.models.config import BIASES, DROPOUT_ON, CoordinateName, ModelConfig, PositionScheme
from abacist.recipes.recipe import Recipe
from abacist.scoring.config import ScoringConfig
from abacist.tasks.config import ArithmeticConfig
from abacist.training.config import TrainingConfig


def three_digit_grokking() -> Recipe:
    """Three-digit sums with a plateau and a sudden jump, as a textbook chapter trains them.

    Cost: 17,760 parameters, about 14 minutes of training on one core.
    Promise: 5 of 1,000,000 sums wrong in one seed (results/three-digit-grokking.json), with a loss of 1.55 at
    step 679 and all validation problems right by step 1,067. The chapter reports a loss of 1.34 for fifty
    epochs, then 0.96 with all test problems right.
    """
    return Recipe(
        name="three-digit-grokking",
        task=ArithmeticConfig(max_digits=3, sampling="values"),
        format=PlainFormatConfig(
            start_token=False,
            padding_token=True,
            operand_order="usual",
            operand_padding="fixed",
            answer_padding="fixed",
        ),
        split=SplitConfig(),
        model=ModelConfig(
            width=32,
            num_heads=4,
            mlp_width=64,
            num_layers=2,
            biases=("mlp-hidden", "mlp-output"),
            tied_head=True,
            embedding_init_std=1.0,
            positions=_learned("index", 13, init_std=1.0),
        ),
        training=TrainingConfig(
            num_examples=50_000,
            batch_size=512,
            num_steps=150 * (50_000 // 512),
            loss_on="all",
            learning_rate=1e-2,
            warmup_steps=200,
            final_fraction=0.0,
            beta2=0.999,
            validate_every=97,
            checkpoint_every=970,
        ),
        scoring=ScoringConfig(),
    )


def parallel_encoder() -> Recipe:
    """An encoder that writes all digits of a sum at once, as a notebook trains it.

    Cost: 104,206 parameters, about 11 minutes of training on one core.
    Promise: 51, 55 and 60 % of the answer tokens right in 3 seeds (results/parallel-encoder.json); 9,949,
    9,925 and 9,349 of 10,000 test problems and 88, 89 and 13 of 100 single-digit sums wrong. The notebook
    reports 79.42 % of the tokens right.
    """
    epoch = 200_000 // 32
    return Recipe(
        name="parallel-encoder",
        task=ArithmeticConfig(max_digits=20),
        format=FORMATS["mirrored"],
        split=SplitConfig(),
        model=ModelConfig(
            direction="both",
            width=64,
            num_heads=2,
            mlp_width=256,
            num_layers=2,
            activation="relu",
            dropout=0.1,
            dropout_on=DROPOUT_ON["torch"],
            biases=("attention-output", "mlp-hidden", "mlp-output", "head"),
            positions=_learned("index", 42, init_std=1.0, beyond="clamp"),
        ),
        training=TrainingConfig(
            num_examples=200_000,
            balanced_examples=True,
            batch_size=32,
            num_steps=3 * epoch,
            learning_rate=1e-3,
            schedule="constant",
            warmup_steps=0,
            weight_decay=0.0,
            beta2=0.999,
            clip_norm=None,
            validate_every=epoch // 5,
            checkpoint_every=epoch // 5,
            record_loss_every=100,
            record_embeddings_every=100,
        ),
        scoring=ScoringConfig(longest=30),
    )


def parallel_encoder_torch() -> Recipe:
    """The same notebook's variant with torch's own encoder layers.

    Cost: 71,438 parameters, about 31 minutes of training on one core.
    Promise: 7,331 of 149,181 answer tokens and 4,830 of 10,000 sums wrong in one seed
    (results/parallel-encoder-torch.json).

    The notebook prints 104,910 parameters, which includes a layer that serves as a template and is never
    used.
    """
    base = parallel_encoder()
    return replace(
        base,
        name="parallel-encoder-torch",
        model=ModelConfig(
            direction="both",
            width=64,
            num_heads=2,
            mlp_width=128,
            num_layers=2,
            activation="relu",
            norm_order="post",
            final_norm=False,
            dropout=0.1,
            dropout_on=DROPOUT_ON["torch"],
            biases=(*BIASES["all"], "head"),
            positions=_learned("index", 42, init_std=1.0, beyond="clamp"),
        ),
        training=replace(base.training, num_steps=10 * (200_000 // 32)),
    )


def spaced_gpt2() -> Recipe:
    """Four-digit sums with spaces in a small GPT-2, as a notebook trains it.

    Cost: 926,080 parameters, about 36 minutes of training on one core.
    Promise: 14 of 10,000 test problems wrong in the trained spacing and 10,000 of 10,000 in
    `1 234 + 5 678=`, in one seed (results/spaced-gpt2.json).
    """
    num_batches = -(-50_000 // 64)
    return Recipe(
        name="spaced-gpt2",
        task=ArithmeticConfig(operand_digits=(4, 4)),
        format=PlainFormatConfig(
            start_token=False,
            end="space",
            operand_order="usual",
            answer_order="usual",
            spaces="around",
        ),
        split=SplitConfig(),
        model=ModelConfig(
            width=128,
            num_heads=4,
            mlp_width=512,
            num_layers=4,
            activation="gelu-tanh",
            init_std=0.02,
            scaled_residual_init=True,
            tied_head=True,
            dropout=0.1,
            positions=_learned("index", 1_024),
        ),
        training=TrainingConfig(
            num_examples=50_000,
            keep_partial_batches=True,
            batch_size=64,
            num_steps=20 * num_batches,
            learning_rate=5e-4,
            schedule="linear",
            warmup_steps=0,
            final_fraction=0.0,
            weight_decay=0.0,
            beta2=0.999,
            precision="bfloat16",
            validate_every=50_000 // 64 // 5,
            validation_problems=10_000,
            checkpoint_every=50_000 // 64 // 5,
            keep_checkpoints=5,
            record_loss_every=50_000 // 64 // 10,
        ),
        scoring=ScoringConfig(),
    )


def five_operations_10m() -> Recipe:
    """+ - * // % of numbers up to 999 with the carries written out, as a notebook trains them.

    Cost: 10,650,624 parameters; 8,000 steps of 1,024 problems need a GPU.
    Promise: none yet, because no run has reached its end.
    """
    return Recipe(
        name="five-operations-10m",
        task=ArithmeticConfig(
            operations=("+", "-", "*", "//", "%"),
            weights=(0.05, 0.10, 0.20, 0.30, 0.35),
            max_digits=3,
            sampling="values",
        ),
        format=CarryTraceFormatConfig(operand_width=3),
        # The document validates on 100,000 of all 4,998,000 problems and trains on all others.
        split=SplitConfig(validation_fraction=100_000 / 4_998_000, test_fraction=0.0),
        model=ModelConfig(
            width=384,
            num_heads=6,
            mlp_width=1_536,
            num_layers=6,
            activation="gelu-tanh",
            norm_epsilon=1e-6,
            init_std=0.02,
            biases=(),
            positions=_learned("index", 28),
        ),
        training=TrainingConfig(
            num_steps=8_000,
            batch_size=1_024,
            learning_rate=8e-4,
            decay_from="warmup",
            warmup_steps=400,
            final_fraction=0.1,
            beta2=0.999,
            weight_decay=1e-4,
            validate_every=500,
            stop_at=0.99,
            stop_on="answer",
            stop_after=1,
            stop_from=5_000,
            checkpoint_every=500,
            checkpoint_seconds=120,
        ),
        scoring=ScoringConfig(),
    )


def looped_abacus_post() -> Recipe:
    """One layer looped 16 times with Abacus positions in queries and keys, as a blog post trains it.

    Cost: 8,954,895 parameters; the post's 210,000 steps took a day on a GPU. All checkpoints are kept, which
    takes 4.5 GB.
    Promise: none yet, because no run has reached its end. The post reports 61 % on the grid to 40 digits.
    """
    return Recipe(
        name="looped-abacus-post",
        task=ArithmeticConfig(max_digits=20),
        format=PlainFormatConfig(start_token=False, unused_tokens=("-", "*")),
        split=SplitConfig(),
        model=ModelConfig(
            width=1_024,
            num_heads=16,
            mlp_width=2_048,
            recurrences=16,
            injection="sublayers",
            norm_epsilon=1e-12,
            final_norm=False,
            biases=(*BIASES["all"], "head"),
            positions=(
                PositionScheme(
                    encoding="learned",
                    coordinate="place",
                    added_to="queries-keys",
                    num_positions=512,
                    offset="sample",
                    max_offset=99,
                    init_std=1.0,
                ),
            ),
        ),
        training=TrainingConfig(
            num_steps=210_000,
            batch_size=95,
            mixed_lengths=True,
            learning_rate=1e-4,
            schedule="constant",
            warmup_steps=0,
            beta2=0.999,
            clip_norm=None,
            record_loss_every=1,
            watch=("1+1", "57+24", "999999+8888", "789" * 50 + "+" + "12" * 20),
            precision="float16",
            progressive_loss="fewer",
            validate_every=5_000,
            checkpoint_every=5_000,
            keep_checkpoints=None,
        ),
        scoring=ScoringConfig(longest=100),
    )


def looped_abacus_1x16() -> Recipe:
    """One layer looped 16 times with Abacus positions (McLeish et al., arXiv 2405.17399).

    Cost: 12,093,440 parameters; the paper trains for 24 hours on a GPU.
    Promise: none yet, because no run has reached its end.
    """
    return _looped_abacus(1, 16)


def looped_abacus_8x2() -> Recipe:
    """Eight layers looped twice with Abacus positions (McLeish et al., arXiv 2405.17399).

    Cost: 63,502,336 parameters; the paper trains for 24 hours on a GPU.
    Promise: none yet, because no run has reached its end.
    """
    return _looped_abacus(8, 2)


def looped_abacus_16x1() -> Recipe:
    """Sixteen layers with Abacus positions (McLeish et al., arXiv 2405.17399).

    Cost: 122,255,360 parameters; the paper trains for 24 hours on a GPU.
    Promise: none yet, because no run has reached its end.
    """
    return _looped_abacus(16, 1)


def looped_abacus_small() -> Recipe:
    """The looped model of the paper at a size made for two cores.

    Cost: 76,032 parameters, about 17 minutes of training on one core.
    Promise: 965, 129, 0, 0, 0 and 1 of 1,000 test problems of up to 10 digits wrong with 1, 2, 4, 8, 16 and 32
    recurrences in one seed (results/looped-abacus-small.json), and 87,403 of 90,000 sums of two numbers of 11
    to 40 digits.

    One layer looped 8 times, trained on sums of up to 10 digits. Positions start at a random offset of up
    to 40. Unlike the paper's, a batch has one pair of lengths and a line begins with a start token.
    """
    base = _looped_abacus(1, 16)
    (positions,) = base.model.positions
    return replace(
        base,
        name="looped-abacus-small",
        task=ArithmeticConfig(max_digits=10),
        format=FORMATS["reversed"],
        model=replace(
            base.model,
            norm_epsilon=0.0,
            embedding_init_std=0.0,
            width=64,
            num_heads=4,
            mlp_width=128,
            recurrences=8,
            positions=(replace(positions, num_positions=128, max_offset=40, init_std=0.0),),
        ),
        training=TrainingConfig(
            num_steps=4_500,
            batch_size=128,
            learning_rate=3e-3,
            schedule="trapezoid",
            warmup_steps=400,
            clip_norm=0.5,
            progressive_loss="detached",
        ),
        scoring=ScoringConfig(longest=40),
    )


def _looped_abacus(num_layers: int, recurrences: int) -> Recipe:
    """Return the paper's training, except that its batch of 8,192 does not ramp up over the first 60 %."""
    num_steps = 20_000_000 // 8_192
    return Recipe(
        name=f"looped-abacus-{num_layers}x{recurrences}",
        task=ArithmeticConfig(max_digits=20),
        format=PlainFormatConfig(start_token=False),
        split=SplitConfig(),
        model=ModelConfig(
            width=1_024,
            num_heads=16,
            mlp_width=1_024,
            num_layers=num_layers,
            recurrences=recurrences,
            injection="add",
            initial_state="noise",
            activation="geglu",
            norm_order="post",
            norm_epsilon=1e-12,
            # The paper's code draws embeddings with a standard deviation of width^-0.5.
            embedding_init_std=1_024**-0.5,
            embedding_norm=True,
            final_mlp=True,
            biases=(),
            positions=(
                PositionScheme(
                    encoding="learned",
                    coordinate="place",
                    num_positions=1_536,
                    offset="batch",
                    max_offset=100,
                    init_std=1_024**-0.5,
                ),
            ),
        ),
        training=TrainingConfig(
            num_steps=num_steps,
            batch_size=8_192,
            mixed_lengths=True,
            learning_rate=1e-4,
            schedule="trapezoid",
            warmup_steps=num_steps // 10,
            decay_steps=num_steps // 10,
            final_fraction=0.0,
            clip_norm=0.5,
            precision="bfloat16",
            progressive_loss="none" if recurrences == 1 else "detached",
            progressive_weight=0.5,
            validate_every=100,
            checkpoint_every=100,
            checkpoint_seconds=120,
        ),
        scoring=ScoringConfig(longest=100),
    )


def _learned(
    coordinate: CoordinateName,
    num_positions: int,
    init_std: float = 0.0,
    beyond: Literal["refuse", "clamp"] = "refuse",
) -> tuple[PositionScheme, ...]:
    """Return positions as in GPT-2; with an `init_std` of 1 they start as torch's embeddings do."""
    return (
        PositionScheme(
            encoding="learned",
            coordinate=coordinate,
            num_positions=num_positions,
            init_std=init_std,
            beyond=beyond,
        ),
    )
