"""The records of a training, each a line of a file in the run directory. Imports no torch."""

from dataclasses import dataclass, field

from abacist.intervals import Proportion
from abacist.scoring.records import Measures


@dataclass(frozen=True)
class Metrics:
    """What a validation measured: one line of `metrics.jsonl`."""

    step: int
    """Number of steps done."""
    loss: float
    """Mean training loss since the last validation, in nats per token; at step 0, that of `training_sample`."""
    exact_match: Proportion
    """Share of validation problems that are answered correctly."""
    learning_rate: float
    """Learning rate of the last step."""
    problems_per_second: float
    """Training problems per second since the last validation, with the time of this one; 0 at step 0."""
    seconds: float
    """Training time so far in seconds, including validation and checkpoints."""
    validation_loss: float | None = None
    """Cross entropy of the targets of the validation problems, in nats per token; None in older records."""
    token_accuracy: Proportion | None = None
    """Share of the targets of the validation problems that are predicted correctly."""
    exact_answer: Proportion | None = None
    """Share of validation problems whose answer is right, given right scratch work."""
    operations: dict[str, Measures] = field(default_factory=dict)
    """The same for each operation, where several are asked."""
    training_sample: Measures | None = None
    """The same on a fixed sample of training problems."""


@dataclass(frozen=True)
class StepLoss:
    """The loss of one batch: one line of `losses.jsonl`."""

    step: int
    """Number of the step, starting at 1."""
    loss: float
    """Loss before the step, in nats per token."""


@dataclass(frozen=True)
class Beginning:
    """How good one of several beginnings was: one line of `beginnings.jsonl`."""

    step: int
    """Number of steps it was trained for."""
    number: int
    """Number of the beginning, starting at 0."""
    exact_match: Proportion | None = None
    """Share of validation problems that were answered correctly then; None where the loss was not finite."""
    validation_loss: float | None = None
    """Cross entropy of their targets, in nats per token; None where the loss was not finite."""
    seconds: float = 0.0
    """Time that it took, in seconds."""


@dataclass(frozen=True)
class Repair:
    """The check before a possible round of repairs: one line of `repairs.jsonl`."""

    step: int
    """Number of steps done before the check."""
    wrong: int
    """Number of wrong neighbourhoods, or of drawn problems with a wrong answer; if it is 0, no round follows."""
    problems: tuple[str, ...]
    """Problems of the training split that the model gets wrong, of training lengths, as a person types them."""
    drawn: int | None = None
    """Number of problems that were drawn and asked; None if all neighbourhoods were checked."""
