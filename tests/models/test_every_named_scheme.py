"""Properties of every named set of position schemes in `POSITIONS`."""

import pytest
import torch
from overfitting import steps_to_learn
from reference_model import reference_logits
from small_models import (
    FORMAT,
    NAMED,
    SCHEME_NAMES,
    ids_of,
    place_window,
    random_model,
    random_problems,
    write,
)
from torch import Tensor

from abacist.models.config import POSITIONS, ModelConfig, PositionScheme
from abacist.models.coordinates import Coordinates
from abacist.models.encoding_kinds import ENCODINGS
from abacist.models.teacher_forcing import IGNORED, coordinates_of, teacher_forced
from abacist.models.transformer import Transformer

each_scheme = pytest.mark.parametrize("positions", SCHEME_NAMES)
V = len(FORMAT.vocabulary)


def same(a: Tensor, b: Tensor) -> bool:
    return torch.allclose(a, b, rtol=1e-9, atol=1e-9)


def seeded(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


# Learning -----------------------------------------------------------------------------------


@each_scheme
def test_one_batch_is_memorised(positions: str) -> None:
    torch.manual_seed(0)
    config = ModelConfig(width=32, num_heads=2, mlp_width=64, positions=POSITIONS[positions])
    model = Transformer(config, V)
    lines = write(random_problems([(3, 2), (1, 1), (2, 3), (3, 3), (2, 2), (1, 3)]))
    assert steps_to_learn(model, lines, loss_below=0.05, max_steps=400) is not None
    with torch.no_grad():
        assert teacher_forced(model.eval(), lines).correct_tokens().float().mean() > 0.97


RANDOMISED = [
    name for name in SCHEME_NAMES if any(s.offset != "none" or s.subset_of for s in POSITIONS[name])
]


@pytest.mark.parametrize("positions", RANDOMISED)
def test_one_batch_is_memorised_under_random_coordinates(positions: str) -> None:
    torch.manual_seed(0)
    config = ModelConfig(width=32, num_heads=2, mlp_width=64, positions=POSITIONS[positions])
    model = Transformer(config, V)
    lines = write(random_problems([(3, 2), (1, 1), (2, 3)]))
    steps = steps_to_learn(model, lines, loss_below=0.05, max_steps=600, generator=seeded(0))
    assert steps is not None


# Who is seen --------------------------------------------------------------------------------


@pytest.mark.parametrize("lengths", [(2, 3), (28, 33)])
@each_scheme
def test_a_token_changes_no_logit_before_it(positions: str, lengths: tuple[int, int]) -> None:
    model = random_model(positions, num_layers=2, recurrences=2, injection="add")
    lines = write(random_problems([lengths]))
    coordinates = coordinates_of(lines)
    logits = model(lines.ids, coordinates)
    length = lines.ids.shape[1]
    for column in {1, length // 3, length // 2, length - 2, length - 1}:
        other = lines.ids.clone()
        other[:, column] = (other[:, column] + 1) % 10
        changed = model(other, coordinates)
        assert same(changed[:, :column], logits[:, :column])
        assert not same(changed[:, column:], logits[:, column:])


@pytest.mark.parametrize("lengths", [(2, 3), (28, 33)])
@each_scheme
def test_no_gradient_flows_back_from_a_logit_to_a_later_token(
    positions: str, lengths: tuple[int, int]
) -> None:
    model = random_model(positions, num_layers=2)
    lines = write(random_problems([lengths]))
    outputs: list[Tensor] = []
    handle = model.dropout.register_forward_hook(
        lambda module, inputs, out: (out.retain_grad(), outputs.append(out))[0]
    )
    logits = model(lines.ids, coordinates_of(lines))
    handle.remove()
    column = lines.ids.shape[1] // 2
    logits[0, column].sum().backward()
    gradient = outputs[0].grad
    assert gradient is not None
    assert not gradient[column + 1 :].any()
    assert gradient[column].any()


# Relative schemes ---------------------------------------------------------------------------

ONLY_DIFFERENCES = {
    **{
        name: schemes
        for name, schemes in NAMED.items()
        if not any(ENCODINGS[s.encoding].depends_on == "coordinates" for s in schemes)
    },
    "rotary places": (PositionScheme(encoding="rotary", coordinate="place"),),
    "alibi places": (PositionScheme(encoding="alibi", coordinate="place"),),
    "two rotary schemes": (
        PositionScheme(encoding="rotary", coordinate="index"),
        PositionScheme(encoding="rotary", coordinate="place"),
    ),
}
KNOWS_MORE = [name for name in SCHEME_NAMES if name not in ONLY_DIFFERENCES]
IDS = torch.tensor([[3, 1, 4, 1, 5, 9, 2, 6]])
HERE = Coordinates(
    torch.arange(8).unsqueeze(0),
    torch.tensor([[1, 2, 3, 1, 2, 3, 1, 2]]),
    torch.tensor([[1, 1, 1, 2, 2, 2, 3, 3]]),
)


def moved(shift: int) -> Coordinates:
    return Coordinates(HERE.index + shift, HERE.place + shift, HERE.row + shift)


@pytest.mark.parametrize("schemes", ONLY_DIFFERENCES.values(), ids=ONLY_DIFFERENCES.keys())
@pytest.mark.parametrize("direction", ["causal", "both"])
def test_logits_do_not_change_when_all_coordinates_shift(
    schemes: tuple[PositionScheme, ...], direction: str
) -> None:
    model = random_model(schemes, num_layers=2, head_width=4, direction=direction)
    logits = model(IDS, HERE, path="dense")
    for shift in (1, 7, 1_000):
        assert same(model(IDS, moved(shift), path="dense"), logits)


@pytest.mark.parametrize("positions", KNOWS_MORE)
def test_logits_change_when_absolute_coordinates_shift(positions: str) -> None:
    model = random_model(positions)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if name.endswith("threshold"):
                parameter.fill_(3.0)
    assert not same(model(IDS, moved(9), path="dense"), model(IDS, HERE, path="dense"))


def test_fire_below_its_threshold_depends_on_differences_only() -> None:
    model = random_model("fire")
    logits = model(IDS, HERE, path="dense")
    assert same(model(IDS, moved(100), path="dense"), logits)
    assert not same(model(IDS, moved(2_000), path="dense"), logits)


# Fast and plain -----------------------------------------------------------------------------


@each_scheme
def test_a_batch_through_the_fast_path_equals_one_pair_at_a_time(positions: str) -> None:
    model = random_model(positions, num_layers=2)
    lines = write(random_problems([(2, 3), (1, 1)]))
    predictions = teacher_forced(model, lines)
    before = lines[:, :-1]
    expected = reference_logits(model, before.ids, coordinates_of(before))
    judged = predictions.labels != IGNORED
    expected = expected[:, -predictions.logits.shape[1] :][judged]
    torch.testing.assert_close(predictions.logits[judged], expected, rtol=1e-9, atol=1e-9)


WINDOWED: dict[str, tuple[PositionScheme, ...]] = {
    **{name: schemes for name, schemes in NAMED.items() if any(s.window for s in schemes)},
    **{
        f"{name} in a place window": (*schemes, *place_window(-1, 2))
        for name, schemes in NAMED.items()
        if not any(s.window for s in schemes)
    },
    "alibi with a window of its own": (
        PositionScheme(encoding="alibi", coordinate="place", window=(0, 2)),
    ),
    "rotary with a window of its own": (
        PositionScheme(encoding="rotary", coordinate="index", window=(-9, 0)),
    ),
    "fire with a window of its own": (
        PositionScheme(encoding="fire", coordinate="index", window=(-9, 0)),
    ),
}
each_windowed = pytest.mark.parametrize("schemes", WINDOWED.values(), ids=WINDOWED.keys())
TWO_WAYS = [{}, {"direction": "both"}, {"recurrences": 2, "length_scaling": True}]


@each_windowed
@pytest.mark.parametrize("settings", TWO_WAYS, ids=["decoder", "encoder", "looped"])
def test_the_windowed_path_equals_the_dense_one(
    schemes: tuple[PositionScheme, ...], settings: dict[str, object]
) -> None:
    model = random_model(schemes, num_layers=2, **settings)
    lines = write(random_problems([(3, 5), (1, 1), (30, 28)]))
    real = lines.lengths.unsqueeze(1) > torch.arange(lines.ids.shape[1])
    dense, windowed = (
        model(lines.ids, coordinates_of(lines), path=path)[real] for path in ("dense", "windowed")
    )
    torch.testing.assert_close(dense, windowed, rtol=1e-9, atol=1e-9)


@each_windowed
def test_the_windowed_path_equals_the_dense_one_under_random_shared_coordinates(
    schemes: tuple[PositionScheme, ...],
) -> None:
    model = random_model(schemes, num_layers=2)
    lines = write(random_problems([(6, 4)] * 5))
    dense, windowed = (
        teacher_forced(model, lines, equal_lengths=True, generator=seeded(0), path=path)
        for path in ("dense", "windowed")
    )
    judged = dense.labels != IGNORED
    torch.testing.assert_close(dense.logits[judged], windowed.logits[judged], rtol=1e-9, atol=1e-9)


@each_scheme
def test_logits_on_either_side_of_64_tokens_come_from_one_function(positions: str) -> None:
    model = random_model(positions, num_layers=2)
    for text in ("<start>21+43=64", "<start>" + "21" * 15 + "+" + "43" * 15 + "=64"):
        ids = ids_of(text)
        coordinates = coordinates_of(FORMAT.annotate(ids))
        assert same(model(ids, coordinates), model(ids, coordinates, path="dense"))
