"""Subjects that the tests of suites share."""

from dataclasses import replace

import torch

from abacist.data.config import SplitConfig
from abacist.evaluation.config import EvaluationConfig
from abacist.evaluation.suite import Subject
from abacist.formats.config import FORMATS
from abacist.formats.format import build_format
from abacist.models.config import POSITIONS, ModelConfig
from abacist.models.transformer import Transformer
from abacist.runs.run import Run
from abacist.tasks.config import ArithmeticConfig
from abacist.tasks.task import build_task


def subject_of(run: Run, **settings: int) -> Subject:
    """What a run is scored as."""
    config = replace(run.recipe.evaluation, **settings)
    return Subject(run.model, run.task, run.format, run.recipe.split, config, run.seed)


def random_subject(
    task=None, format="reversed", positions="place-relative", evaluation=None, **model
) -> Subject:
    """A model with random weights; it is wrong on nearly everything."""
    task = task or ArithmeticConfig(max_digits=3)
    written = build_format(FORMATS[format] if isinstance(format, str) else format, task)
    torch.manual_seed(0)
    config = ModelConfig(width=8, num_heads=2, mlp_width=8, positions=POSITIONS[positions], **model)
    return Subject(
        Transformer(config, len(written.vocabulary)).eval(),
        build_task(task),
        written,
        SplitConfig(),
        EvaluationConfig(num_problems=10, **(evaluation or {})),
        seed=0,
    )


def ignored(name: str, done: int, total: int) -> None:
    """Progress nobody looks at."""
