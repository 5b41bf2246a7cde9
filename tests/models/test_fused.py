"""The fused kernel equals the dense path; on a GPU its gradients do so as well."""

import pytest
import torch
from small_models import SCHEME_NAMES, random_model, random_problems, write

from abacist.models.config import PositionScheme
from abacist.models.teacher_forcing import teacher_forced

RAGGED = [(1, 1), (3, 5), (7, 2), (1, 8)]
EXTRA = {
    "place window and index window": (
        PositionScheme(encoding="relative", coordinate="place", window=(0, 2)),
        PositionScheme(encoding="relative", coordinate="index", window=(-5, 0)),
    ),
    "fire over place": (PositionScheme(encoding="fire", coordinate="place"),),
    "alibi over place": (PositionScheme(encoding="alibi", coordinate="place"),),
    "rope over place": (PositionScheme(encoding="rotary", coordinate="place"),),
}
needs_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")


@pytest.mark.filterwarnings("ignore:flex_attention called without torch.compile")
@pytest.mark.parametrize("positions", [*SCHEME_NAMES, *EXTRA])
@torch.no_grad()
def test_fused_equals_dense_for_every_scheme(positions: str) -> None:
    model = random_model(EXTRA.get(positions, positions), dtype=torch.float32)
    equal = positions in ("place-relative", "abacus-fire")
    lines = write(random_problems([(4, 6)] * 3 if equal else RAGGED))
    fused, dense = (
        teacher_forced(model, lines, equal_lengths=equal, path=path).margins()
        for path in ("fused", "dense")
    )
    assert torch.allclose(fused, dense, rtol=1e-4, atol=1e-4)


@needs_gpu
@pytest.mark.parametrize("positions", [*SCHEME_NAMES, *EXTRA])
def test_fused_gradients_equal_dense_ones_on_a_gpu(positions: str) -> None:
    gradients = []
    for path in ("fused", "dense"):
        model = random_model(
            EXTRA.get(positions, positions), width=64, mlp_width=64, dtype=torch.float32
        ).to("cuda")
        predictions = teacher_forced(model, write(random_problems(RAGGED)), path=path)
        margins = predictions.margins()
        margins[margins.isfinite()].sum().backward()
        gradients.append([parameter.grad for parameter in model.parameters()])
    for fused, dense in zip(*gradients, strict=True):
        assert torch.allclose(fused, dense, rtol=1e-3, atol=1e-3)


@needs_gpu
@pytest.mark.parametrize("length_lines", [64, 160])
def test_fused_memory_on_a_gpu_does_not_hold_all_pairs(length_lines: int) -> None:
    model = random_model("abacus-fire", width=64, mlp_width=64, dtype=torch.float32).to("cuda")
    lines = write(random_problems([(length_lines, length_lines)] * 64))
    tokens = lines.ids.shape[1]
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    with torch.no_grad():
        teacher_forced(model, lines)
    all_pairs = 4 * 64 * model.config.num_heads * tokens * tokens
    activations = 40 * 4 * 64 * tokens * 64
    assert torch.cuda.max_memory_allocated() - before < activations + all_pairs // 2
