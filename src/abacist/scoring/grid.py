"""The suite `grid`: exact match for every pair of operand lengths, 1 … N by 1 … N.

Cells are scored in growing squares, so that a grid which is interrupted is a smaller grid. All
lines of a cell share their coordinates, and one pass judges them; a published notebook generates
token by token and recomputes the line for each (`benchmarks/scoring.py` compares the two).
"""

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from abacist import generators
from abacist.data.split import draw_from_split
from abacist.errors import ProblemError
from abacist.intervals import Proportion
from abacist.scoring.exact_match import exact_match
from abacist.scoring.judge import Judge
from abacist.scoring.samples import distinct
from abacist.scoring.suite import Progress, Row, Section, Suite
from abacist.scoring.trained_model import TrainedModel
from abacist.tasks.arithmetic import Arithmetic
from abacist.tasks.problems import Problems, Shapes

_LARGEST_DEFAULT = 40
_DIGITS_AT_ONCE = 4_000_000
"""Operand digits drawn at once: bounds the memory of a grid of any size."""


@dataclass
class Grid:
    """What is known of every cell; row i and column j are operands of i + 1 and j + 1 digits."""

    right: Tensor
    """int64 (N, N)"""
    count: Tensor
    """int64 (N, N): problems scored; 0 where a cell is still to be scored."""
    margin: Tensor
    """float64 (N, N): smallest margin; infinite where nothing has been scored."""

    @staticmethod
    def empty(size: int) -> "Grid":
        return Grid(
            torch.zeros(size, size, dtype=torch.int64),
            torch.zeros(size, size, dtype=torch.int64),
            torch.full((size, size), torch.inf, dtype=torch.float64),
        )

    def add(self, problems: Problems, margins: Tensor) -> None:
        """Count judged problems into their cells."""
        size = len(self.right)
        cell = (problems.lengths_BN[:, 0] - 1) * size + problems.lengths_BN[:, 1] - 1
        self.right.view(-1).scatter_add_(0, cell, (margins > 0).long())
        self.count.view(-1).scatter_add_(0, cell, torch.ones_like(cell))
        self.margin.view(-1).scatter_reduce_(0, cell, margins, "amin")

    def over(self, cells: Tensor) -> tuple[Proportion, float | None]:
        """All problems of some cells, bool (N, N), and their smallest margin."""
        proportion = Proportion(int(self.right[cells].sum()), int(self.count[cells].sum()))
        return proportion, float(self.margin[cells].min()) if proportion.n else None

    def average(self) -> float | None:
        """The mean over all scored cells, each counting alike: what papers and notebooks report."""
        scored = self.count > 0
        if not bool(scored.any()):
            return None
        return float((self.right[scored] / self.count[scored]).mean())


def by_both_lengths(trained_model: TrainedModel, on_progress: Progress) -> Section:
    """The whole grid, or on Ctrl-C as much of it as has been scored."""
    assert isinstance(trained_model.task, Arithmetic)
    size, per_cell = _size(trained_model), trained_model.scoring.grid_problems
    grid, judge = Grid.empty(size), Judge(trained_model)
    # Time goes with the tokens of lines, of which later squares have far more.
    total, done = per_cell * sum(map(_tokens_of_square, range(1, size + 1))), 0
    complete, square = True, 0
    try:
        for square in range(1, size + 1):
            told = f"tokens, square {square} of {size}"
            generator = generators.generator(trained_model.seed, "score", "grid", square)
            for lengths in _pieces(square, per_cell):
                problems = draw_of_lengths(trained_model, lengths, generator)
                tokens, drawn = int(_tokens(lengths).sum()), len(problems)

                def report(
                    judged: int,
                    told: str = told,
                    before: int = done,
                    tokens: int = tokens,
                    drawn: int = drawn,
                ) -> None:
                    on_progress(told, before + tokens * judged // drawn, total)

                verdicts = judge.verdicts(problems, report)
                grid.add(problems, verdicts.margins)
                done += tokens
    except KeyboardInterrupt:
        complete = False
    title = f"Grid of operand lengths, 1…{size} by 1…{size} digits"
    if not complete:
        title += f", interrupted in square {square}"
    return judge.section(
        title,
        _rows(grid, trained_model.task),
        complete,
        right=grid.right.tolist(),
        count=grid.count.tolist(),
        average=grid.average(),
    )


def _obstacle(trained_model: TrainedModel) -> str | None:
    task = trained_model.task
    if not isinstance(task, Arithmetic) or (task.config.min_operands, task.config.max_operands) != (
        2,
        2,
    ):
        return (
            "a grid is made of the lengths of two operands, which this task does not have. "
            "Try --suite strata."
        )
    size = trained_model.scoring.grid_size
    if size is None:
        return None
    try:
        _try_out(trained_model, size)
    except ProblemError as error:
        largest = _largest_scorable(trained_model, size - 1)
        return (
            f"{str(error).partition('. ')[0].removesuffix('.')}. "
            f"Lengths up to {largest} by {largest} digits can be scored: type --grid-size {largest}."
        )
    return None


GRID = Suite("every pair of operand lengths, as a heat map", _obstacle, by_both_lengths)


def _size(trained_model: TrainedModel) -> int:
    """The size asked for, or twice the training lengths as far as they can be scored."""
    if trained_model.scoring.grid_size is not None:
        return trained_model.scoring.grid_size
    assert isinstance(trained_model.task, Arithmetic)
    return _largest_scorable(
        trained_model, min(_LARGEST_DEFAULT, 2 * trained_model.task.config.longest_operand)
    )


def _largest_scorable(trained_model: TrainedModel, most: int) -> int:
    """The largest grid up to `most` whose longest lines the format can write and the model can read."""
    low, high = 1, most
    while low < high:
        middle = (low + high + 1) // 2
        try:
            _try_out(trained_model, middle)
            low = middle
        except ProblemError:
            high = middle - 1
    return low


def _try_out(trained_model: TrainedModel, digits: int) -> None:
    """Put the longest lines of a grid through the model. Raises `ProblemError` where that cannot be."""
    nines, ten, one = "9" * digits, "1" + "0" * (digits - 1), "1"
    pairs = [[nines, nines], [nines, ten], [ten, nines], [nines, one], [one, nines]]
    for operation in trained_model.task.operations:
        problems = Problems.from_texts(pairs, [operation] * len(pairs))
        exact_match(trained_model, problems)


def _pieces(square: int, per_cell: int) -> Iterator[Tensor]:
    """Lengths int64 (B, 2) of the problems of all cells whose longer operand has `square` digits.

    In pieces of bounded memory: some cells each, or a part of one.
    """
    shorter = torch.arange(1, square + 1)
    below = torch.stack([shorter, torch.full_like(shorter, square)], dim=1)
    cells = torch.cat([below, below[:-1].flip(1)])
    problems_at_once = max(1, _DIGITS_AT_ONCE // (2 * square))
    for some in torch.split(cells, max(1, problems_at_once // per_cell)):
        whole = some.repeat_interleave(per_cell, dim=0)
        yield from torch.split(whole, problems_at_once) if len(some) == 1 else (whole,)


def draw_of_lengths(
    trained_model: TrainedModel, lengths: Tensor, generator: torch.Generator
) -> Problems:
    """Test problems of these lengths, int64 (B, 2), each once."""
    operation = trained_model.task.draw_shapes(len(lengths), generator).operation_B
    shapes = Shapes(lengths, operation)
    problems = draw_from_split(trained_model.task, shapes, "test", trained_model.split, generator)
    return distinct(problems, len(problems))


def _tokens(lengths: Tensor) -> Tensor:
    """int64 (B,): about how many tokens the lines of such problems have."""
    return lengths.sum(dim=1) + lengths.amax(dim=1) + 4


def _tokens_of_square(square: int) -> int:
    """Tokens of one line of each of its cells."""
    shorter = range(1, square)
    return 2 * sum(2 * square + length + 4 for length in shorter) + 3 * square + 4


def _rows(grid: Grid, task: Arithmetic) -> list[Row]:
    size, trained = len(grid.right), task.config.longest_operand
    digits = torch.arange(1, size + 1)
    longer = torch.maximum(digits.unsqueeze(1), digits)
    shorter = torch.minimum(digits.unsqueeze(1), digits)
    regions = [
        ("all cells", "all", size, longer > 0),
        (f"both ≤ {trained} digits", "trained", min(trained, size), longer <= trained),
        (
            f"one > {trained} digits",
            "beyond",
            size,
            (longer > trained) & (shorter <= trained),
        ),
        (f"both > {trained} digits", "beyond", size, shorter > trained),
        ("equal lengths", "diagonal", size, longer == shorter),
    ]
    return [
        Row(name, kind, longest, *grid.over(cells))
        for name, kind, longest, cells in regions
        if bool(cells.any())
    ]
