"""A model that is right on some problems and wrong on others, trained once per session."""

from collections.abc import Iterator

import pytest
import torch
from small_models import FORMAT, TASK
from torch import nn

from abacist.data.config import SplitConfig
from abacist.data.stream import TrainingStream
from abacist.models.config import ModelConfig
from abacist.models.teacher_forcing import IGNORED, teacher_forced
from abacist.models.transformer import Transformer


@pytest.fixture(autouse=True)
def _one_thread() -> Iterator[None]:
    """The tensors of these tests are too small for several threads."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture(scope="session")
def half_trained() -> Transformer:
    """A place-relative model after 250 steps, in float64."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    model = Transformer(ModelConfig(width=16, num_heads=2, mlp_width=64), len(FORMAT.vocabulary))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2, betas=(0.9, 0.98))
    stream = TrainingStream(TASK, FORMAT, SplitConfig(), batch_size=48, seed=0)
    for step in range(250):
        predictions = teacher_forced(model, stream.batch(step), equal_lengths=True)
        loss = nn.functional.cross_entropy(
            predictions.logits.flatten(0, 1), predictions.labels.flatten(), ignore_index=IGNORED
        )
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    torch.set_num_threads(threads)
    return model.double().eval()
