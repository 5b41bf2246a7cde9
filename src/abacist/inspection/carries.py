"""The carry into every column of an answer, for tasks that are solved column by column."""

import torch
from torch import Tensor

from abacist.formats.running_sums import RunningSumsFormat
from abacist.scoring.trained_model import TrainedModel
from abacist.tasks import digits
from abacist.tasks.arithmetic import Arithmetic
from abacist.tasks.problems import Problems
from abacist.tasks.task import Task


def has_carries(task: Task) -> bool:
    """Whether a task has carries: sums, and differences with their borrows."""
    return isinstance(task, Arithmetic) and task.column_rule() is not None


def carries(trained_model: TrainedModel, problems: Problems) -> Tensor:
    """Return the carry into each column, units first, as int64 (B, W + 1).

    For formats that add several numbers one after the other, these are the carries of the last
    addition. Raises `ValueError` for a task without carries.
    """
    task = trained_model.task
    rule = task.column_rule() if isinstance(task, Arithmetic) else None
    if rule is None:
        raise ValueError("this task has no carries")
    is_running = isinstance(trained_model.format, RunningSumsFormat)
    columns_BNW = _last_addition(problems) if is_running else problems.digits_BNW
    state = torch.zeros(len(problems), dtype=torch.int64)
    carry_by_column = [state]
    for column in range(columns_BNW.shape[2]):
        _, state = rule.step(state, columns_BNW[:, :, column].long())
        carry_by_column.append(state)
    return torch.stack(carry_by_column, dim=1)


def _last_addition(problems: Problems) -> Tensor:
    """Return the sum of all operands but the last, and the last operand, as uint8 (B, 2, W)."""
    last_B = problems.counts_B - 1
    total = torch.zeros_like(problems.digits_BNW[:, 0])
    for position in range(problems.num_operands):
        is_before = (position < last_B).unsqueeze(1)
        addend = problems.digits_BNW[:, position] * is_before
        wider = total.shape[1] - addend.shape[1]
        total, _ = digits.add(total, torch.nn.functional.pad(addend, (0, wider)))
    last = problems.digits_BNW[torch.arange(len(problems)), last_B]
    wider = total.shape[1] - last.shape[1]
    return torch.stack([total, torch.nn.functional.pad(last, (0, wider))], dim=1)
