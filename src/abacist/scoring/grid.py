"""The suite `grid`: exact match for every pair of operand lengths, such as 1…20 by 1…20 digits.

Cells are scored in growing squares, so that an interrupted grid is a smaller grid. All lines of a
cell share their coordinates, and one teacher-forced pass scores them. A published notebook
generates token by token instead, and recomputes the line for each (`benchmarks/scoring.py`
compares the two).
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from abacist import generators
from abacist.data.split import draw_from_split
from abacist.errors import ProblemError
from abacist.intervals import Proportion
from abacist.scoring.exact_match import exact_match
from abacist.scoring.judge import Judge
from abacist.scoring.records import Row, Section
from abacist.scoring.recurrence_counts import not_looped, with_recurrences
from abacist.scoring.samples import distinct
from abacist.scoring.suite import Progress, Suite
from abacist.scoring.trained_model import TrainedModel
from abacist.tasks.arithmetic import Arithmetic
from abacist.tasks.problems import Problems, Shapes

_LARGEST_DEFAULT = 40
_DIGITS_AT_ONCE = 4_000_000
"""Operand digits drawn at once: bounds the memory of a grid of any size."""


@dataclass
class Grid:
    """The results of all cells, (size, size) each.

    The cell at [i, j] is about operands of i + 1 and j + 1 digits.
    """

    right: Tensor
    """int64: number of problems answered correctly."""
    count: Tensor
    """int64: number of problems scored; 0 where a cell has not been scored."""
    margin: Tensor
    """float64: smallest margin in logits; infinite where a cell has not been scored."""

    @staticmethod
    def empty(size: int) -> "Grid":
        """Return a grid without results."""
        return Grid(
            torch.zeros(size, size, dtype=torch.int64),
            torch.zeros(size, size, dtype=torch.int64),
            torch.full((size, size), torch.inf, dtype=torch.float64),
        )

    def add(self, problems: Problems, margins: Tensor) -> None:
        """Count problems in their cells; `margins`, (B,), are positive for correct answers."""
        size = len(self.right)
        cell = (problems.lengths_BN[:, 0] - 1) * size + problems.lengths_BN[:, 1] - 1
        self.right.view(-1).scatter_add_(0, cell, (margins > 0).long())
        self.count.view(-1).scatter_add_(0, cell, torch.ones_like(cell))
        self.margin.view(-1).scatter_reduce_(0, cell, margins, "amin")

    def over(self, cells: Tensor) -> tuple[Proportion, float | None]:
        """Return the share of correct answers in some cells, and their smallest margin.

        `cells` is bool (size, size). The margin is None where nothing has been scored.
        """
        proportion = Proportion(int(self.right[cells].sum()), int(self.count[cells].sum()))
        return proportion, float(self.margin[cells].min()) if proportion.n else None

    def average(self) -> float | None:
        """Return the mean over all scored cells with equal weights, as papers and notebooks report it."""
        scored = self.count > 0
        if not bool(scored.any()):
            return None
        return float((self.right[scored] / self.count[scored]).mean())


def by_both_lengths(trained_model: TrainedModel, on_progress: Progress) -> Section:
    """Score the whole grid, or, if Ctrl-C is pressed, as many squares as are done by then.

    The setting `recurrences` adds grids of a looped model with other numbers of recurrences. They
    follow the grid of the model as it was trained.
    """
    assert isinstance(trained_model.task, Arithmetic)
    size, per_cell = _size(trained_model), trained_model.scoring.grid_problems
    trained = trained_model.model.config.recurrences
    others = sorted({*trained_model.scoring.recurrences} - {trained})
    # Time is proportional to the tokens of lines, of which later squares have far more.
    tokens = per_cell * sum(map(_tokens_of_square, range(1, size + 1)))
    judge = Judge(trained_model, on_progress, tokens * (1 + len(others)))
    grids: dict[int, Grid] = {}
    interruption, rows = "", []
    for count in [trained, *others]:
        name = f", {count} recurrences" if others else ""
        model = trained_model.model
        if count != trained:
            model = with_recurrences(model, count)
        grids[count] = Grid.empty(size)
        interrupted_square = _score(
            replace(trained_model, model=model), judge, grids[count], per_cell, name
        )
        suffix = name + " (as in training)" * (bool(others) and count == trained)
        rows += _rows(grids[count], trained_model.task, suffix)
        if interrupted_square is not None:
            interruption = f", interrupted in square {interrupted_square}{name}"
            break
    details = _details(grids[trained])
    if others:
        details["recurrences"] = {str(count): _details(grids[count]) for count in sorted(grids)}
    return judge.section(
        f"Grid of operand lengths, 1…{size} by 1…{size} digits{interruption}",
        rows,
        not interruption,
        **details,
    )


def _score(
    trained_model: TrainedModel, judge: Judge, grid: Grid, per_cell: int, name: str
) -> int | None:
    """Fill a grid square by square, and return the one in which Ctrl-C was pressed; None if in none."""
    size, square = len(grid.right), 0
    try:
        for square in range(1, size + 1):
            label = f"tokens, square {square} of {size}{name}"
            generator = generators.generator(trained_model.seed, "score", "grid", square)
            for lengths_BN in _pieces(square, per_cell):
                problems = draw_of_lengths(trained_model, lengths_BN, generator)
                verdicts = judge.verdicts(
                    problems,
                    trained_model=trained_model,
                    label=label,
                    work=int(_num_tokens(lengths_BN).sum()),
                )
                grid.add(problems, verdicts.margins)
    except KeyboardInterrupt:
        return square
    return None


def _details(grid: Grid) -> dict[str, Any]:
    """Return right answers and problems of all cells, and the mean over cells, as JSON values."""
    return {
        "right": grid.right.tolist(),
        "count": grid.count.tolist(),
        "average": grid.average(),
    }


def _obstacle(trained_model: TrainedModel) -> str | None:
    task = trained_model.task
    if not isinstance(task, Arithmetic) or (task.config.min_operands, task.config.max_operands) != (
        2,
        2,
    ):
        return (
            "a grid is made of the lengths of two operands, and this task has other problems. "
            "Try --suite strata."
        )
    if trained_model.scoring.recurrences and not_looped(trained_model):
        return not_looped(trained_model)
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


GRID = Suite(
    "every pair of operand lengths, as a heat map for each number of recurrences",
    _obstacle,
    by_both_lengths,
    settings=("grid_size", "grid_problems", "recurrences"),
)


def _size(trained_model: TrainedModel) -> int:
    """Return the configured size, or twice the training lengths, as far as these can be scored."""
    if trained_model.scoring.grid_size is not None:
        return trained_model.scoring.grid_size
    assert isinstance(trained_model.task, Arithmetic)
    return _largest_scorable(
        trained_model, min(_LARGEST_DEFAULT, 2 * trained_model.task.config.longest_operand)
    )


def _largest_scorable(trained_model: TrainedModel, most: int) -> int:
    """Return the size of the largest grid, up to `most`, whose longest lines can be scored."""
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
    """Score the longest lines of a grid.

    Raises `ProblemError` where the format cannot write them or the model cannot read them.
    """
    nines, ten, one = "9" * digits, "1" + "0" * (digits - 1), "1"
    pairs = [[nines, nines], [nines, ten], [ten, nines], [nines, one], [one, nines]]
    for operation in trained_model.task.operations:
        problems = Problems.from_texts(pairs, [operation] * len(pairs))
        exact_match(trained_model, problems)


def _pieces(square: int, per_cell: int) -> Iterator[Tensor]:
    """Yield the lengths of problems in all cells whose longer operand has `square` digits.

    Each piece is int64 (B, 2). Its memory is bounded: it covers some cells, or a part of one.
    """
    shorter = torch.arange(1, square + 1)
    below = torch.stack([shorter, torch.full_like(shorter, square)], dim=1)
    cells = torch.cat([below, below[:-1].flip(1)])
    problems_at_once = max(1, _DIGITS_AT_ONCE // (2 * square))
    for group in torch.split(cells, max(1, problems_at_once // per_cell)):
        lengths_BN = group.repeat_interleave(per_cell, dim=0)
        yield from torch.split(lengths_BN, problems_at_once) if len(group) == 1 else (lengths_BN,)


def draw_of_lengths(
    trained_model: TrainedModel, lengths_BN: Tensor, generator: torch.Generator
) -> Problems:
    """Draw distinct test problems whose operands have these lengths, int64 (B, 2)."""
    operation_B = trained_model.task.draw_shapes(len(lengths_BN), generator).operation_B
    shapes = Shapes(lengths_BN, operation_B)
    problems = draw_from_split(trained_model.task, shapes, "test", trained_model.split, generator)
    return distinct(problems, len(problems))


def _num_tokens(lengths_BN: Tensor) -> Tensor:
    """Return the approximate number of tokens of lines with such operands, int64 (B,)."""
    return lengths_BN.sum(dim=1) + lengths_BN.amax(dim=1) + 4


def _tokens_of_square(square: int) -> int:
    """Return the approximate number of tokens of one line per cell, over all cells of a square."""
    shorter = range(1, square)
    return 2 * sum(2 * square + length + 4 for length in shorter) + 3 * square + 4


def _rows(grid: Grid, task: Arithmetic, suffix: str) -> list[Row]:
    """Return the rows of the section: all cells, three regions by training length, the diagonal."""
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
        Row(name + suffix, kind, longest, *grid.over(cells))
        for name, kind, longest, cells in regions
        if bool(cells.any())
    ]
