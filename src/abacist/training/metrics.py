"""One line of `metrics.jsonl`: read and written without torch."""

from dataclasses import dataclass

from abacist.intervals import Proportion


@dataclass(frozen=True)
class Metrics:
    """What a validation measured: one line of `metrics.jsonl`."""

    step: int
    """Number of steps done."""
    loss: float
    """Mean training loss since the last validation, in nats per token."""
    exact_match: Proportion
    """Share of validation problems that are answered correctly."""
    learning_rate: float
    """Learning rate of the last step."""
    problems_per_second: float
    """Training problems per second since the last validation."""
    seconds: float
    """Training time so far in seconds, including validation and checkpoints."""
