"""The suite `counterexamples`: a search for a problem of training lengths that the model gets wrong.

Random problems are mostly easy. The search starts with random problems and with long carry chains,
and keeps those with the smallest margins. It then mutates these: it changes digits, writes one
digit into several columns, reverses the order of operands, takes an operand from another problem,
changes signs if operands have any, and again keeps the smallest margins. It stops at the first
batch with a wrong answer. A search without a counterexample proves nothing; its budget says how
many candidates were tried.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial

import torch
from torch import Tensor

from abacist import generators
from abacist.data.split import hash_problems
from abacist.scoring.judge import Judge
from abacist.scoring.records import Row, Section
from abacist.scoring.suite import Progress, Suite, always_applies
from abacist.scoring.trained_model import TrainedModel
from abacist.tasks.arithmetic import Arithmetic
from abacist.tasks.modular_addition import ModularAddition, residues_of
from abacist.tasks.own_task import OwnTask
from abacist.tasks.problems import OPERATIONS, Problems, Shapes, concatenate, first_occurrences
from abacist.tasks.task import Task
from abacist.vocabulary import DIGITS

_POOL_SIZE = 256
"""Number of problems with the smallest margins, which each generation mutates."""
_CHILDREN = 8
"""Number of mutations of each of them per generation."""
_DRAWN_AT_ONCE = 4_096
_DIVISIONS = ("//", "%")
_Rule = Callable[[Problems, torch.Generator], tuple[Tensor, Tensor]]
"""Changes problems at random; returns digits, uint8 (B, N, W), and lengths, int64 (B, N)."""


def search(trained_model: TrainedModel, on_progress: Progress) -> Section:
    """Search until a wrong answer is found, the budget is spent, or Ctrl-C is pressed."""
    budget, judge = trained_model.scoring.budget, Judge(trained_model)
    state = _Search(judge)
    complete = True
    try:
        for phase, problems in _candidates(trained_model, state, budget):
            state.add(phase, problems[: budget - state.tried])
            on_progress(phase, state.tried, budget)
            if state.num_wrong or state.tried >= budget:
                break
    except KeyboardInterrupt:
        complete = False
    return judge.section(
        f"Search for a counterexample, {state.tried:,} of a budget of {budget:,} problems",
        state.rows(),
        complete,
        budget=budget,
        tried=state.tried,
        found=state.num_wrong,
        smallest_margin=float(state.margins[0]) if state.tried else None,
        problem=trained_model.task.expressions(state.pool[:1])[0] if state.tried else None,
    )


COUNTEREXAMPLES = Suite(
    "a search for a wrong answer: long carries, near-ties, mutations",
    always_applies,
    search,
    settings=("budget",),
)


class _Search:
    """What the search has tried, and the problems with the smallest margins so far."""

    def __init__(self, judge: Judge) -> None:
        self._judge = judge
        self.tried = self.num_wrong = 0
        self.pool: Problems
        """Distinct problems in ascending order of their margins."""
        self.margins = torch.zeros(0, dtype=torch.float64)
        """Margins of the pool, in logits."""
        self._phases: dict[str, tuple[int, int, float]] = {}
        """For each phase: number of problems tried, number of wrong answers, smallest margin."""

    def add(self, phase: str, problems: Problems) -> None:
        """Score candidates, and put those with the smallest margins into the pool."""
        verdicts = self._judge.verdicts(problems, phase)
        num_wrong = verdicts.proportion.errors
        tried, errors, margin = self._phases.get(phase, (0, 0, torch.inf))
        smallest = min(margin, float(verdicts.margins.min()))
        self._phases[phase] = (tried + len(problems), errors + num_wrong, smallest)
        candidates, margins = problems, verdicts.margins
        if self.tried:
            candidates = concatenate([self.pool, problems])
            margins = torch.cat([self.margins, margins])
        new = first_occurrences(hash_problems(candidates, ordered=True))
        best = new[margins[new].argsort(stable=True)[:_POOL_SIZE]]
        self.pool, self.margins = candidates[best], margins[best]
        self.tried += len(problems)
        self.num_wrong += num_wrong

    def rows(self) -> list[Row]:
        """Return a row for each phase, without a proportion, since a search is not a sample."""
        return [
            Row(phase, "search", 0, None, margin, f"{tried:,} tried, {wrong:,} wrong", "search")
            for phase, (tried, wrong, margin) in self._phases.items()
        ]


def _candidates(
    trained_model: TrainedModel, state: _Search, budget: int
) -> Iterator[tuple[str, Problems]]:
    """Yield batches of candidates after the name of their phase.

    A quarter of the budget is random, a quarter has long carry chains, and the rest are mutations.
    """
    sources: list[tuple[str, Task]] = [("random problems", trained_model.task)]
    task = trained_model.task
    if (
        isinstance(task, Arithmetic)
        and task.operations == ("+",)
        and task.config.max_operands == 2
        and not task.config.operand_digits
        and not task.config.signed
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
        yield "mutations of the least confident", mutated(task, state.pool, _CHILDREN, generator)


def mutated(task: Task, problems: Problems, children: int, generator: torch.Generator) -> Problems:
    """Return `children` mutations of every problem, each by one rule; all are problems of the task."""
    parents = problems[torch.arange(len(problems)).repeat_interleave(children)]
    base = task.base if isinstance(task, OwnTask) else len(DIGITS)
    rules: list[_Rule] = [
        partial(_other_digits, base),
        partial(_repeated_digit, base),
        _other_operand,
    ]
    if not (isinstance(task, Arithmetic) and task.config.operand_digits):
        rules.append(_reversed_operands)
    rule_B = torch.randint(len(rules), (len(parents),), generator=generator)
    digits, lengths = parents.digits_BNW.clone(), parents.lengths_BN.clone()
    for number, rule in enumerate(rules):
        indices = (rule_B == number).nonzero().squeeze(1)
        if len(indices):
            digits[indices], lengths[indices] = rule(parents[indices], generator)
    mutations = _repaired(digits, lengths, parents.operation_B)
    if isinstance(task, ModularAddition):
        outside = (residues_of(mutations) >= task.config.modulus).any(dim=1)
        digits = torch.where(outside.view(-1, 1, 1), parents.digits_BNW, mutations.digits_BNW)
        lengths = torch.where(outside.unsqueeze(1), parents.lengths_BN, mutations.lengths_BN)
        return Problems(digits, Shapes(lengths, parents.operation_B))
    if parents.negative_BN is not None:
        # Signs stay where they are, and one in four is changed.
        changes = torch.rand(lengths.shape, generator=generator) < 0.25
        return mutations.with_signs(parents.negative_BN ^ changes)
    return mutations


def _repaired(digits_BNW: Tensor, lengths_BN: Tensor, operation_B: Tensor) -> Problems:
    """Return problems with leading zeros replaced by 1, and zero divisors as well."""
    last = (lengths_BN - 1).clamp(min=0).unsqueeze(2)
    leading = digits_BNW.gather(2, last).squeeze(2)
    divides = torch.isin(operation_B, torch.tensor([OPERATIONS.index(o) for o in _DIVISIONS]))
    must_not_be_zero = lengths_BN > 1
    # A slice, since the lists of a sorting task may hold one number only.
    must_not_be_zero[:, 1:2] |= divides.unsqueeze(1) & (lengths_BN[:, 1:2] > 0)
    leading = torch.where(must_not_be_zero & (leading == 0), 1, leading)
    digits_BNW = digits_BNW.scatter(2, last, leading.to(torch.uint8).unsqueeze(2))
    inside = torch.arange(digits_BNW.shape[2]) < lengths_BN.unsqueeze(2)
    return Problems(digits_BNW * inside, Shapes(lengths_BN, operation_B))


def _other_digits(
    base: int, problems: Problems, generator: torch.Generator
) -> tuple[Tensor, Tensor]:
    """Draw one to three digits again, anywhere in the problem."""
    digits = problems.digits_BNW.clone()
    inside = torch.arange(digits.shape[2]) < problems.lengths_BN.unsqueeze(2)
    for repeat in range(3):
        column = torch.multinomial(inside.flatten(1).double(), 1, generator=generator)
        drawn = torch.randint(base, column.shape, generator=generator, dtype=torch.uint8)
        # The second change is made in half of the problems, the third in a quarter.
        changes = torch.rand(column.shape, generator=generator) < 0.5**repeat
        flat = digits.flatten(1)
        drawn = torch.where(changes, drawn, flat.gather(1, column))
        digits = flat.scatter(1, column, drawn).view_as(digits)
    return digits, problems.lengths_BN


def _repeated_digit(
    base: int, problems: Problems, generator: torch.Generator
) -> tuple[Tensor, Tensor]:
    """Write one digit, often the largest or 0, into a range of columns of one operand."""
    batch, operands, width = problems.digits_BNW.shape
    operand = torch.randint(operands, (batch, 1, 1), generator=generator)
    ends = torch.randint(width + 1, (batch, 2), generator=generator).sort(dim=1).values
    column = torch.arange(width)
    in_range = (column >= ends[:, :1]) & (column < ends[:, 1:])
    digit = torch.randint(2 * base, (batch, 1, 1), generator=generator)
    often = torch.where(digit < base + base // 2, 0, base - 1)
    digit = torch.where(digit < base, digit, often).to(torch.uint8)
    changes = (torch.arange(operands).view(1, -1, 1) == operand) & in_range.unsqueeze(1)
    return torch.where(changes, digit, problems.digits_BNW), problems.lengths_BN


def _other_operand(problems: Problems, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Replace one operand by that of another problem, where both have it."""
    batch, operands, _ = problems.digits_BNW.shape
    donor = torch.randint(batch, (batch,), generator=generator)
    operand = torch.randint(operands, (batch, 1), generator=generator)
    takes = torch.arange(operands) == operand
    takes &= (problems.lengths_BN > 0) & (problems.lengths_BN[donor] > 0)
    digits = torch.where(takes.unsqueeze(2), problems.digits_BNW[donor], problems.digits_BNW)
    return digits, torch.where(takes, problems.lengths_BN[donor], problems.lengths_BN)


def _reversed_operands(problems: Problems, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Reverse the order of the operands; missing ones stay last."""
    position = torch.arange(problems.num_operands)
    count = problems.counts_B.unsqueeze(1)
    source = torch.where(position < count, count - 1 - position, position)
    digits = problems.digits_BNW.gather(1, source.unsqueeze(2).expand_as(problems.digits_BNW))
    return digits, problems.lengths_BN.gather(1, source)
