"""The carry into every column, for tasks that are worked from column to column."""

import torch
from torch import Tensor

from abacist.tasks.arithmetic import Arithmetic
from abacist.tasks.problems import Problems
from abacist.tasks.task import Task


def has_carries(task: Task) -> bool:
    """Whether a task carries from column to column: sums of a fixed number of operands."""
    return isinstance(task, Arithmetic) and task.column_rule() is not None


def carries(task: Task, problems: Problems) -> Tensor:
    """int64 (B, W + 1): what is carried into each column, the units' first, for tasks with carries."""
    rule = task.column_rule() if isinstance(task, Arithmetic) else None
    if rule is None:
        raise ValueError("this task has no carries")
    state = torch.zeros(len(problems), dtype=torch.int64)
    found = [state]
    for column in range(problems.digits_BNW.shape[2]):
        _, state = rule.step(state, problems.digits_BNW[:, :, column].long())
        found.append(state)
    return torch.stack(found, dim=1)
