import math

import pytest
import torch
from small_models import (
    FORMAT,
    SCHEME_NAMES,
    coordinates_of_places,
    ids_of,
    place_window,
    random_model,
    random_problems,
    write,
)
from torch import Tensor, nn

from abacist.errors import ProblemError
from abacist.models.config import POSITIONS, ModelConfig, PositionScheme
from abacist.models.coordinates import Coordinates
from abacist.models.parameter_count import num_parameters
from abacist.models.teacher_forcing import IGNORED, coordinates_of, teacher_forced
from abacist.models.transformer import Path, Transformer

V = len(FORMAT.vocabulary)
each_scheme = pytest.mark.parametrize("positions", SCHEME_NAMES)
INDEX_WINDOW = (PositionScheme(encoding="relative", coordinate="index", window=(-4, 0)),)


def same(a: Tensor, b: Tensor) -> bool:
    return torch.allclose(a, b, rtol=1e-9, atol=1e-9)


def logits_of(model: Transformer, ids: Tensor, path: Path = "dense") -> Tensor:
    """Logits of lines, annotated from their ids as in generation."""
    return model(ids, coordinates_of(FORMAT.annotate(ids)), path=path)


@pytest.mark.parametrize("num_layers", [1, 2])
@each_scheme
def test_later_tokens_never_change_a_logit(positions: str, num_layers: int) -> None:
    model = random_model(positions, num_layers=num_layers)
    ids = ids_of("<start>21+43=64<end>")
    logits = logits_of(model, ids)
    generator = torch.Generator().manual_seed(0)
    for num_same in range(1, ids.shape[1]):
        other = torch.randint(0, V, ids.shape, generator=generator)
        changed = torch.cat([ids[:, :num_same], other[:, num_same:]], dim=1)
        assert same(logits_of(model, changed)[:, :num_same], logits[:, :num_same])


def test_later_tokens_never_change_a_logit_on_the_windowed_path() -> None:
    model = random_model(place_window(-1, 1), num_layers=2)
    ids = ids_of("<start>21+43=64<end>")
    logits = logits_of(model, ids, "windowed")
    for num_same in range(1, ids.shape[1]):
        changed = torch.cat([ids[:, :num_same], (ids[:, num_same:] + 1) % 10], dim=1)
        assert same(logits_of(model, changed, "windowed")[:, :num_same], logits[:, :num_same])


@each_scheme
def test_an_earlier_token_can_change_the_last_logit(positions: str) -> None:
    model = random_model(positions)
    logits = logits_of(model, ids_of("<start>21+43=6"))
    changed = logits_of(model, ids_of("<start>29+43=6"))
    assert not same(logits[:, -1], changed[:, -1])


@pytest.mark.parametrize(
    ("positions", "path"),
    [
        (place_window(0, 1), "dense"),
        (place_window(0, 1), "windowed"),
        (place_window(-1, 2), "dense"),
        (place_window(-1, 2), "windowed"),
        (POSITIONS["place-relative-soft"], "dense"),
    ],
)
@pytest.mark.parametrize("num_layers", [1, 2])
def test_logits_of_a_place_relative_model_do_not_change_when_all_places_shift(
    positions: tuple[PositionScheme, ...], path: Path, num_layers: int
) -> None:
    model = random_model(positions, num_layers=num_layers)
    ids = torch.tensor([[3, 1, 4, 1, 5, 9, 2, 6]])
    places = [1, 2, 3, 1, 2, 3, 1, 2]
    logits = model(ids, coordinates_of_places([places]), path=path)
    for shift in (1, 7, 1_000):
        moved = coordinates_of_places([[place + shift for place in places]])
        assert same(model(ids, moved, path=path), logits)


def test_logits_of_an_index_relative_model_do_not_change_when_all_indices_shift() -> None:
    model = random_model("index-relative")
    ids = torch.tensor([[3, 1, 4, 1, 5]])
    coordinates = coordinates_of_places([[1, 2, 3, 4, 5]])
    moved = Coordinates(coordinates.index + 50, coordinates.place)
    assert same(model(ids, coordinates, path="dense"), model(ids, moved, path="dense"))


@pytest.mark.parametrize("positions", ["gpt2", "coupling", "abacus"])
def test_logits_of_a_learned_encoding_do_change_when_all_coordinates_shift(positions: str) -> None:
    model = random_model(positions)
    ids = torch.tensor([[3, 1, 4, 1, 5]])
    coordinates = coordinates_of_places([[1, 2, 3, 4, 5]])
    moved = Coordinates(coordinates.index + 9, coordinates.place + 9)
    assert not same(model(ids, coordinates, path="dense"), model(ids, moved, path="dense"))


def test_without_positions_only_the_set_of_earlier_tokens_counts() -> None:
    model = random_model("nope")
    logits, swapped = (logits_of(model, torch.tensor([ids])) for ids in ([1, 2, 3], [2, 1, 3]))
    assert same(logits[:, -1], swapped[:, -1])


@pytest.mark.parametrize("path", ["dense", "windowed"])
@pytest.mark.parametrize("num_layers", [1, 2, 3])
def test_first_gives_the_tail_of_a_full_pass(num_layers: int, path: Path) -> None:
    model = random_model(num_layers=num_layers)
    lines = write(random_problems([(3, 5), (6, 2)]))
    coordinates = coordinates_of(lines)
    whole = model(lines.ids, coordinates, path=path)
    for first in (1, 7, lines.ids.shape[1] - 1):
        tail = model(lines.ids, coordinates, first=first, path=path)
        # Padding sees nothing, so what it predicts means nothing.
        real = (lines.index >= 0)[:, first:]
        assert tail.shape == (2, lines.ids.shape[1] - first, V)
        assert same(tail[real], whole[:, first:][real])


@each_scheme
def test_padding_on_the_right_changes_no_logit_of_a_line(positions: str) -> None:
    model = random_model(positions, num_layers=2)
    problems = random_problems([(1, 1), (3, 5), (12, 11), (9, 2)])
    lines = write(problems)
    together = model(lines.ids, coordinates_of(lines))
    for row in range(len(problems)):
        alone = write(problems[row : row + 1])
        length = alone.ids.shape[1]
        logits = model(alone.ids, coordinates_of(alone))
        assert same(together[row : row + 1, :length], logits)


@pytest.mark.parametrize("positions", ["coupling", "abacus"])
def test_padding_of_a_short_line_is_never_beyond_a_learned_table(positions: str) -> None:
    model = random_model(positions)
    problems = random_problems([(1, 1), (99, 99)])
    for row in range(2):
        teacher_forced(model, write(problems[row : row + 1]))
    teacher_forced(model, write(problems))


def test_a_line_beyond_the_learned_positions_is_refused() -> None:
    model = random_model("gpt2")
    lines = write(random_problems([(60, 60)]))
    with pytest.raises(ProblemError, match="learned positions end at index 127"):
        model(lines.ids, coordinates_of(lines))


@pytest.mark.parametrize("number", [0, 1])
def test_a_line_beyond_the_learned_positions_is_refused_with_the_setting_to_change(
    number: int,
) -> None:
    schemes = [*POSITIONS["place-relative"], *POSITIONS["gpt2"]][-2:]
    model = random_model(positions=tuple(schemes if number else reversed(schemes)))
    lines = write(random_problems([(60, 60)]))
    with pytest.raises(ProblemError, match=rf"--model\.positions\.{number}\.num_positions"):
        model(lines.ids, coordinates_of(lines))


@pytest.mark.parametrize("positions", ["gpt2", "place-relative", "nope"])
def test_a_generator_changes_nothing_without_random_offsets(positions: str) -> None:
    model = random_model(positions)
    lines = write(random_problems([(3, 4)]))
    coordinates = coordinates_of(lines)
    moved = model(lines.ids, coordinates, generator=torch.Generator().manual_seed(0))
    assert same(moved, model(lines.ids, coordinates))


@pytest.mark.parametrize("positions", ["coupling", "abacus"])
def test_a_generator_decides_the_logits_of_a_randomised_scheme(positions: str) -> None:
    model = random_model(positions)
    lines = write(random_problems([(3, 4)]))
    first, again, other = (
        model(lines.ids, coordinates_of(lines), generator=torch.Generator().manual_seed(seed))
        for seed in (1, 1, 2)
    )
    assert same(first, again)
    assert not same(first, other)


@pytest.mark.parametrize(
    "tied_head",
    [
        False,
        True,
    ],
)
@each_scheme
def test_loss_before_training_is_about_that_of_a_guess(positions: str, tied_head: bool) -> None:
    lines = write(random_problems([(length, 5) for length in range(1, 11)] * 10))
    losses = []
    for seed in range(3):
        torch.manual_seed(seed)
        model = Transformer(ModelConfig(positions=POSITIONS[positions], tied_head=tied_head), V)
        with torch.no_grad():
            predictions = teacher_forced(model, lines)
        losses.append(
            nn.functional.cross_entropy(
                predictions.logits.flatten(0, 1), predictions.labels.flatten(), ignore_index=IGNORED
            ).item()
        )
    assert abs(sum(losses) / 3 - math.log(V)) < 1.0, losses


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"tied_head": True},
        {"biases": ()},
        {"biases": ("mlp-hidden", "head")},
        {"norm": "rms"},
        {"tied_head": True, "biases": (), "norm": "rms", "num_layers": 3},
        {"activation": "geglu", "final_norm": False},
        {"embedding_norm": True, "final_mlp": True, "norm": "rms", "activation": "swiglu"},
        {"activation": "swiglu", "norm_order": "post", "recurrences": 3, "injection": "linear"},
        {"query_key_norm": True, "length_scaling": True, "direction": "both"},
        {"head_width": 5},
        {"width": 6, "num_heads": 1, "mlp_width": 7, "activation": "relu"},
        *({"positions": POSITIONS[name], "num_layers": 2} for name in SCHEME_NAMES),
        {"positions": (*POSITIONS["abacus"], *POSITIONS["index-relative"])},
    ],
    ids=lambda settings: ",".join(f"{k}={v}" for k, v in settings.items())[:60] or "default",
)
def test_number_of_parameters_equals_the_formula(settings: dict[str, object]) -> None:
    config = ModelConfig(**settings)
    assert Transformer(config, V).num_parameters == num_parameters(config, V)


@pytest.mark.parametrize(
    ("settings", "init_std"),
    [
        ({}, 1.0),
        ({"tied_head": True}, 0.125),
        ({"tied_head": True, "embedding_init_std": 1.0}, 1.0),
        ({"embedding_init_std": 0.02}, 0.02),
    ],
)
def test_token_embeddings_start_with_the_configured_init_std(
    settings: dict[str, float | bool], init_std: float
) -> None:
    torch.manual_seed(0)
    weight = Transformer(ModelConfig(width=64, **settings), V).embedding.weight
    assert weight.std().item() == pytest.approx(init_std, rel=0.1)


def test_tied_head_is_the_embedding() -> None:
    model = Transformer(ModelConfig(tied_head=True), V)
    assert model.head.weight is model.embedding.weight
    assert Transformer(ModelConfig(), V).head.weight is not model.embedding.weight


@pytest.mark.parametrize("settings", [{"norm": "rms"}, {"activation": "relu"}, {"biases": ()}])
def test_every_choice_of_a_setting_gives_another_model(settings: dict[str, object]) -> None:
    ids = ids_of("<start>21+43=64")
    default, other = random_model(), random_model(**settings)
    common = default.state_dict()
    other.load_state_dict({name: common[name] for name in other.state_dict()})
    assert not same(logits_of(default, ids), logits_of(other, ids))


def influence(model: Transformer, ids: Tensor, coordinates: Coordinates) -> Tensor:
    """Which logits change when a token is replaced, bool (T, T), query by key."""
    width = ids.shape[1]
    logits = model(ids, coordinates, path="dense")
    changed = ids.repeat(width, 1)
    changed[torch.arange(width), torch.arange(width)] = (ids[0] + 1) % V
    difference = (model(changed, coordinates, path="dense") - logits).abs().amax(dim=-1)
    return (difference > 1e-12).T


VISIBILITY_SCHEMES = {
    **{name: POSITIONS[name] for name in SCHEME_NAMES},
    "place window (-1, 1)": place_window(-1, 1),
    "place window (0, 2)": place_window(0, 2),
    "index window": INDEX_WINDOW,
    "both windows": (*place_window(0, 1), *INDEX_WINDOW),
}
each_visibility = pytest.mark.parametrize(
    "positions", VISIBILITY_SCHEMES.values(), ids=VISIBILITY_SCHEMES.keys()
)


@each_visibility
def test_a_token_changes_exactly_the_logits_of_tokens_that_see_it(
    positions: tuple[PositionScheme, ...],
) -> None:
    model = random_model(positions)
    ids = ids_of("<start>214+43=752<end>")
    coordinates = coordinates_of(FORMAT.annotate(ids))
    (visible,) = model.visibility(coordinates)
    assert visible.shape == (1, ids.shape[1], ids.shape[1])
    assert torch.equal(influence(model, ids, coordinates), visible[0])


@each_visibility
def test_in_two_layers_a_token_changes_the_logits_of_tokens_that_see_one_that_sees_it(
    positions: tuple[PositionScheme, ...],
) -> None:
    model = random_model(positions, num_layers=2)
    ids = ids_of("<start>214+43=752<end>")
    coordinates = coordinates_of(FORMAT.annotate(ids))
    first, second = model.visibility(coordinates)
    receptive_field = second[0].int() @ first[0].int() > 0
    assert torch.equal(influence(model, ids, coordinates), receptive_field)


def test_in_a_window_of_places_an_answer_digit_sees_its_column_the_next_and_the_start() -> None:
    ids = ids_of("<start>214+43=7")
    (visible,) = random_model().visibility(coordinates_of(FORMAT.annotate(ids)))
    seen = [FORMAT.vocabulary.decode([token]) for token in ids[0, visible[0, -1]].tolist()]
    assert seen == ["<start>", "2", "1", "4", "3", "7"]


def test_the_same_seed_gives_the_same_model() -> None:
    states = []
    for _ in range(2):
        torch.manual_seed(5)
        states.append(Transformer(ModelConfig(), V).state_dict())
    assert all(torch.equal(states[0][name], states[1][name]) for name in states[0])
