"""The suite `counterexamples`: a search for a problem of training lengths that the model gets wrong.

Random problems are mostly easy. The search begins with random ones and with long chains of carries,
keeps those answered with the smallest margin, and climbs down from there: it changes digits of
them, writes one digit into many columns, reorders operands, takes an operand from another problem,
and keeps what comes closer to a tie. It stops at the first batch with a wrong answer. Finding
none proves nothing; the budget says how hard was looked.
"""

from collections.abc import Iterator
from dataclasses import replace

import torch
from torch import Tensor

from abacist import generators
from abacist.data.split import hash_problems
from abacist.scoring.judge import Judge
from abacist.scoring.suite import Progress, Row, Section, Suite
from abacist.scoring.trained_model import TrainedModel
from abacist.tasks.arithmetic import Arithmetic
from abacist.tasks.modular_addition import ModularAddition, residues_of
from abacist.tasks.problems import OPERATIONS, Problems, Shapes, concatenate, first_occurrences
from abacist.tasks.task import Task

_KEPT = 256
"""Least confident problems that each round mutates."""
_CHILDREN = 8
"""Mutations of each of them, a round."""
_DRAWN_AT_ONCE = 4_096
_DIVISIONS = ("//", "%")


def search(trained_model: TrainedModel, on_progress: Progress) -> Section:
    """Look for a wrong answer until one is found or the budget is spent, or Ctrl-C is pressed."""
    budget, judge = trained_model.scoring.budget, Judge(trained_model)
    hunt = _Hunt(trained_model, judge)
    complete = True
    try:
        for phase, problems in _candidates(trained_model, hunt, budget):
            hunt.judge(phase, problems[: budget - hunt.tried])
            on_progress(phase, hunt.tried, budget)
            if hunt.found or hunt.tried >= budget:
                break
    except KeyboardInterrupt:
        complete = False
    return judge.section(
        f"Search for a counterexample, {hunt.tried:,} of a budget of {budget:,} problems",
        hunt.rows(),
        complete,
        budget=budget,
        tried=hunt.tried,
        found=hunt.found,
        smallest_margin=float(hunt.margins[0]) if hunt.tried else None,
        problem=trained_model.task.expressions(hunt.pool[:1])[0] if hunt.tried else None,
    )


COUNTEREXAMPLES = Suite(
    "a search for a wrong answer: long carries, near-ties, mutations",
    lambda trained_model: None,
    search,
)


class _Hunt:
    """What has been tried, and the least confident problems so far."""

    def __init__(self, trained_model: TrainedModel, judge: Judge) -> None:
        self.task, self._judge = trained_model.task, judge
        self.tried = self.found = 0
        self.pool: Problems
        """The least confident first."""
        self.margins = torch.zeros(0, dtype=torch.float64)
        self._phases: dict[str, tuple[int, int, float]] = {}
        """By phase: problems tried, wrong answers, smallest margin."""

    def judge(self, phase: str, problems: Problems) -> None:
        verdicts = self._judge.verdicts(problems, row=phase)
        wrong = verdicts.proportion.errors
        tried, errors, margin = self._phases.get(phase, (0, 0, torch.inf))
        smallest = min(margin, float(verdicts.margins.min()))
        self._phases[phase] = (tried + len(problems), errors + wrong, smallest)
        everything, margins = problems, verdicts.margins
        if self.tried:
            everything = concatenate([self.pool, problems])
            margins = torch.cat([self.margins, margins])
        new = first_occurrences(hash_problems(everything, ordered=True))
        best = new[margins[new].argsort(stable=True)[:_KEPT]]
        self.pool, self.margins = everything[best], margins[best]
        self.tried += len(problems)
        self.found += wrong

    def rows(self) -> list[Row]:
        """A row for each phase. It is a search and no sample, so there is no proportion."""
        return [
            Row(phase, "search", 0, None, margin, f"{tried:,} tried, {wrong:,} wrong", "search")
            for phase, (tried, wrong, margin) in self._phases.items()
        ]


def _candidates(
    trained_model: TrainedModel, hunt: _Hunt, budget: int
) -> Iterator[tuple[str, Problems]]:
    """Batches to try, with what they are: a quarter random, a quarter with carries, then mutations."""
    sources: list[tuple[str, Task]] = [("random problems", trained_model.task)]
    task = trained_model.task
    if (
        isinstance(task, Arithmetic)
        and task.operations == ("+",)
        and task.config.max_operands == 2
        and not task.config.operand_digits
    ):
        chains = (0.0,) * (task.config.max_digits // 2) + (1.0,) * (
            task.config.max_digits - task.config.max_digits // 2 + 1
        )
        config = replace(task.config, sampling="carry-chains", carry_chains=chains)
        sources.append(("long chains of carries", Arithmetic(config)))
    for name, source in sources:
        generator = generators.generator(trained_model.seed, "score", "counterexamples", name)
        for begin in range(0, max(1, budget // 4), _DRAWN_AT_ONCE):
            count = min(_DRAWN_AT_ONCE, max(1, budget // 4) - begin)
            yield name, source.draw(source.draw_shapes(count, generator), generator)
    generator = generators.generator(trained_model.seed, "score", "counterexamples", "mutations")
    while True:
        yield "mutations of the least confident", mutated(task, hunt.pool, _CHILDREN, generator)


def mutated(task: Task, problems: Problems, children: int, generator: torch.Generator) -> Problems:
    """So many children of every problem, each changed in one way; all are problems of the task."""
    parents = problems[torch.arange(len(problems)).repeat_interleave(children)]
    ways = [_other_digits, _one_digit_in_a_row, _other_operand]
    if not (isinstance(task, Arithmetic) and task.config.operand_digits):
        ways.append(_turned)
    chosen = torch.randint(len(ways), (len(parents),), generator=generator)
    digits, lengths = parents.digits_BNW.clone(), parents.lengths_BN.clone()
    for number, way in enumerate(ways):
        rows = (chosen == number).nonzero().squeeze(1)
        if len(rows):
            digits[rows], lengths[rows] = way(parents[rows], generator)
    children_ = _repaired(digits, lengths, parents.operation_B)
    if isinstance(task, ModularAddition):
        outside = (residues_of(children_) >= task.config.modulus).any(dim=1)
        digits = torch.where(outside.view(-1, 1, 1), parents.digits_BNW, children_.digits_BNW)
        lengths = torch.where(outside.unsqueeze(1), parents.lengths_BN, children_.lengths_BN)
        return Problems(digits, Shapes(lengths, parents.operation_B))
    return children_


def _repaired(digits: Tensor, lengths: Tensor, operation_B: Tensor) -> Problems:
    """Without leading zeros, and without division by zero."""
    last = (lengths - 1).clamp(min=0).unsqueeze(2)
    leading = digits.gather(2, last).squeeze(2)
    divides = torch.isin(operation_B, torch.tensor([OPERATIONS.index(o) for o in _DIVISIONS]))
    nonzero = lengths > 1
    nonzero[:, 1] |= divides & (lengths[:, 1] > 0)
    leading = torch.where(nonzero & (leading == 0), 1, leading)
    digits = digits.scatter(2, last, leading.to(torch.uint8).unsqueeze(2))
    inside = torch.arange(digits.shape[2]) < lengths.unsqueeze(2)
    return Problems(digits * inside, Shapes(lengths, operation_B))


def _other_digits(problems: Problems, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """One to three digits, wherever they stand, are drawn anew."""
    digits = problems.digits_BNW.clone()
    inside = torch.arange(digits.shape[2]) < problems.lengths_BN.unsqueeze(2)
    for repeat in range(3):
        column = torch.multinomial(inside.flatten(1).double(), 1, generator=generator)
        drawn = torch.randint(10, column.shape, generator=generator, dtype=torch.uint8)
        # The second and third change happens to half of the problems each.
        changes = torch.rand(column.shape, generator=generator) < 0.5**repeat
        flat = digits.flatten(1)
        drawn = torch.where(changes, drawn, flat.gather(1, column))
        digits = flat.scatter(1, column, drawn).view_as(digits)
    return digits, problems.lengths_BN


def _one_digit_in_a_row(problems: Problems, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """One digit, often 9 or 0, in a stretch of columns of one operand."""
    batch, operands, width = problems.digits_BNW.shape
    operand = torch.randint(operands, (batch, 1, 1), generator=generator)
    ends = torch.randint(width + 1, (batch, 2), generator=generator).sort(dim=1).values
    column = torch.arange(width)
    stretch = (column >= ends[:, :1]) & (column < ends[:, 1:])
    digit = torch.randint(20, (batch, 1, 1), generator=generator)
    digit = torch.where(digit < 10, digit, torch.where(digit < 15, 0, 9)).to(torch.uint8)
    chosen = (torch.arange(operands).view(1, -1, 1) == operand) & stretch.unsqueeze(1)
    return torch.where(chosen, digit, problems.digits_BNW), problems.lengths_BN


def _other_operand(problems: Problems, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """One operand is that of another problem, where both have it."""
    batch, operands, _ = problems.digits_BNW.shape
    donor = torch.randint(batch, (batch,), generator=generator)
    operand = torch.randint(operands, (batch, 1), generator=generator)
    takes = torch.arange(operands) == operand
    takes &= (problems.lengths_BN > 0) & (problems.lengths_BN[donor] > 0)
    digits = torch.where(takes.unsqueeze(2), problems.digits_BNW[donor], problems.digits_BNW)
    return digits, torch.where(takes, problems.lengths_BN[donor], problems.lengths_BN)


def _turned(problems: Problems, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """The operands in reverse order, those that are not there staying last."""
    position = torch.arange(problems.num_operands)
    count = problems.counts_B.unsqueeze(1)
    source = torch.where(position < count, count - 1 - position, position)
    digits = problems.digits_BNW.gather(1, source.unsqueeze(2).expand_as(problems.digits_BNW))
    return digits, problems.lengths_BN.gather(1, source)
