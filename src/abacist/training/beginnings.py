"""Several beginnings of one training, of which the one that is best on validation is trained to its end.

Now and then a tiny model begins so badly that no further training fixes it, which shows early. Each
beginning has initial weights of its own, and all see the same batches.
"""

import math
from collections.abc import Callable, Sequence

import torch

from abacist import generators
from abacist.data.stream import Batches
from abacist.models.transformer import Transformer
from abacist.scoring.measures import ALL
from abacist.training.config import TrainingConfig
from abacist.training.loop import Observer, TrainingInterrupted, Validation, requests_to_stop
from abacist.training.metrics import Beginning
from abacist.training.optimizer import Optimizer
from abacist.training.processes import Processes
from abacist.training.step import training_step


def seed_weights(seed: int, number: int) -> None:
    """Let the next model get the initial weights of a beginning; those of the first depend on `seed` alone."""
    torch.manual_seed(
        generators.generator(seed, "beginning", number).initial_seed() if number else seed
    )


def try_beginning(
    number: int,
    model: Transformer,
    config: TrainingConfig,
    stream: Batches,
    validate: Callable[[], Validation],
    observer: Observer,
    processes: Processes,
) -> Beginning:
    """Train a model for the first `beginning_steps` steps of the training, and return how good it is then.

    Raises `TrainingInterrupted` where Ctrl-C was pressed.
    """
    optimizer = Optimizer(model, config)
    num_steps = min(config.beginning_steps, config.num_steps)
    model.train()
    with requests_to_stop() as is_stop_requested:
        for step in range(num_steps):
            batch = stream.batch(step)
            loss = training_step(
                model, optimizer, batch, config, step, stream.aligned, stream.seed, processes
            )
            observer.on_beginning_step(number, step + 1, loss)
            if processes.is_any(is_stop_requested()):
                raise TrainingInterrupted(
                    f"stopped in beginning {number + 1} of {config.num_beginnings}"
                )
            if not math.isfinite(loss):
                return Beginning(step + 1, number)
    with optimizer.averaged():
        measured = validate().validation[ALL]
    return Beginning(num_steps, number, measured.exact_match, measured.loss)


def best_of(beginnings: Sequence[Beginning]) -> int:
    """Return the number of the best beginning: most exact matches, then the smallest loss, then the first."""

    def goodness(beginning: Beginning) -> tuple[float, float]:
        match, loss = beginning.exact_match, beginning.validation_loss
        if match is None or loss is None or not math.isfinite(loss):
            return -1.0, 0.0
        return match.value or 0.0, -loss

    return max(beginnings, key=goodness).number
