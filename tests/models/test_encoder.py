"""Encoders: every token sees every other, and all answer tokens are decoded in parallel."""

import pytest
import torch
from overfitting import steps_to_learn
from small_models import SCHEME_NAMES, coordinates_of_places, random_problems, write
from small_models import random_model as random_decoder
from torch import Tensor

from abacist.errors import ConfigurationError
from abacist.formats.annotated import AnnotatedTokens, Field
from abacist.formats.config import FORMATS
from abacist.formats.continuation import continue_lines
from abacist.models.config import POSITIONS, ModelConfig, PositionScheme
from abacist.models.coordinates import Coordinates
from abacist.models.decoding import generate
from abacist.models.teacher_forcing import IGNORED, coordinates_of, teacher_forced
from abacist.models.transformer import Transformer
from abacist.tasks.arithmetic import Arithmetic
from abacist.tasks.config import ArithmeticConfig
from abacist.tasks.problems import Problems

TASK_CONFIG = ArithmeticConfig(max_digits=10)
TASK = Arithmetic(TASK_CONFIG)
SLOTS = FORMATS["parallel"].build(TASK_CONFIG)
MIRRORED = FORMATS["mirrored"].build(TASK_CONFIG)
EACH_FORMAT = {"parallel": SLOTS, "mirrored": MIRRORED}

UNWINDOWED = [name for name in SCHEME_NAMES if not any(s.window for s in POSITIONS[name])]
GIVEN = [
    name
    for name in SCHEME_NAMES
    if all(scheme.coordinate in ("index", "place") for scheme in POSITIONS[name])
]
"""Schemes over the coordinates that these formats have."""
each_scheme = pytest.mark.parametrize("positions", GIVEN)
each_unwindowed = pytest.mark.parametrize("positions", UNWINDOWED)
each_format = pytest.mark.parametrize("name", EACH_FORMAT)


def random_model(positions: object = "rope", seed: int = 0, **settings: object) -> Transformer:
    sizes = {"vocabulary_size": max(len(format.vocabulary) for format in EACH_FORMAT.values())}
    return random_decoder(positions, seed, direction="both", **sizes, **settings)


def written(name: str, rows: list[tuple[int, int]]) -> AnnotatedTokens:
    problems = Problems.from_integers(rows)
    return EACH_FORMAT[name].write(problems, TASK.answer(problems))


def same(a: Tensor, b: Tensor) -> bool:
    return torch.allclose(a, b, rtol=1e-9, atol=1e-9)


LINE = written("parallel", [(123, 45)])
WHERE = coordinates_of(LINE)


# Who sees whom ------------------------------------------------------------------------------


@each_unwindowed
def test_every_token_sees_all_tokens_except_padding(positions: str) -> None:
    lines = written("parallel", [(123, 45), (1, 2)])
    (visible,) = random_model(positions).visibility(coordinates_of(lines))
    real = lines.field != Field.PADDING
    assert not real.all()
    assert torch.equal(visible, real.unsqueeze(1).expand_as(visible))


@each_unwindowed
def test_any_token_changes_any_logit(positions: str) -> None:
    model = random_model(positions)
    logits = model(LINE.ids, WHERE)
    for column in range(LINE.ids.shape[1]):
        other = LINE.ids.clone()
        other[:, column] = (other[:, column] + 1) % 10
        changed = (model(other, WHERE) - logits).abs().amax(dim=-1)
        assert (changed > 1e-12).all()


def test_the_last_token_changes_the_first_logits_of_an_encoder_but_of_no_decoder() -> None:
    other = LINE.ids.clone()
    other[:, -1] = 3
    decoder = random_decoder("rope", vocabulary_size=len(EACH_FORMAT["parallel"].vocabulary))
    for model, sees_it in ((random_model(), True), (decoder, False)):
        assert same(model(LINE.ids, WHERE)[:, 0], model(other, WHERE)[:, 0]) != sees_it


@pytest.mark.parametrize("path", ["dense", "windowed"])
def test_a_window_bounds_an_encoder_on_both_sides(path: str) -> None:
    window = (PositionScheme(encoding="relative", coordinate="place", window=(-1, 1)),)
    model = random_model(window)
    places = [1, 2, 3, 4, 1, 2, 3, 4]
    ids = torch.tensor([[3, 1, 4, 1, 5, 9, 2, 6]])
    coordinates = coordinates_of_places([places])
    logits = model(ids, coordinates, path=path)
    for column, place in enumerate(places):
        other = ids.clone()
        other[:, column] += 1
        changed = (model(other, coordinates, path=path) - logits).abs().amax(dim=-1)[0] > 1e-12
        assert changed.tolist() == [abs(place - query) <= 1 for query in places]


@each_scheme
@each_format
def test_padding_changes_no_logit_of_a_line(name: str, positions: str) -> None:
    model = random_model(positions, num_layers=2)
    rows = [(1, 2), (123, 45), (7, 9_999_999)]
    together = written(name, rows)
    logits = model(together.ids, coordinates_of(together))
    for number, row in enumerate(rows):
        alone = written(name, [row])
        length = alone.ids.shape[1]
        assert same(model(alone.ids, coordinates_of(alone)), logits[number : number + 1, :length])


def test_the_ids_of_padding_change_no_logit() -> None:
    model = random_model("fire", num_layers=2)
    lines = written("parallel", [(1, 2), (123, 45)])
    padding = lines.field == Field.PADDING
    other = torch.where(padding, 7, lines.ids)
    logits, changed = (model(ids, coordinates_of(lines)) for ids in (lines.ids, other))
    assert same(logits[~padding], changed[~padding])


@pytest.mark.parametrize("num_layers", [1, 2])
def test_first_gives_the_tail_of_a_full_pass(num_layers: int) -> None:
    model = random_model(num_layers=num_layers)
    whole = model(LINE.ids, WHERE)
    for first in range(LINE.ids.shape[1]):
        assert same(model(LINE.ids, WHERE, first=first), whole[:, first:])


# Symmetry -----------------------------------------------------------------------------------

WITHOUT_INDEX = {
    **{name: POSITIONS[name] for name in ("place-relative", "place-relative-soft")},
    **{name: POSITIONS[name] for name in ("abacus", "coupling", "nope")},
    **{
        f"{encoding} places": (PositionScheme(encoding=encoding, coordinate="place"),)
        for encoding in ("sinusoidal", "rotary", "alibi", "fire")
    },
    "t5 places": (
        PositionScheme(encoding="relative", coordinate="place", num_buckets=8, max_distance=16),
    ),
    "learned places in every layer": (
        PositionScheme(encoding="learned", coordinate="place", added_to="queries-keys"),
    ),
}


@pytest.mark.parametrize("schemes", WITHOUT_INDEX.values(), ids=WITHOUT_INDEX.keys())
@pytest.mark.parametrize("path", ["dense", "windowed"])
def test_logits_move_along_with_tokens_that_swap_positions_and_places(
    schemes: tuple[PositionScheme, ...], path: str
) -> None:
    if path == "windowed" and not any(scheme.window for scheme in schemes):
        path = "auto"
    model = random_model(schemes, num_layers=2)
    order = torch.randperm(LINE.ids.shape[1], generator=torch.Generator().manual_seed(0))
    moved = Coordinates(WHERE.index, WHERE.place[:, order])
    logits = model(LINE.ids, WHERE, path=path)
    assert same(model(LINE.ids[:, order], moved, path=path), logits[:, order])


@pytest.mark.parametrize("positions", ["rope", "alibi", "t5", "fire", "gpt2", "sinusoidal"])
def test_logits_do_not_move_along_under_an_index_encoding(positions: str) -> None:
    model = random_model(positions)
    order = torch.randperm(LINE.ids.shape[1], generator=torch.Generator().manual_seed(0))
    moved = Coordinates(WHERE.index, WHERE.place[:, order])
    assert not same(model(LINE.ids[:, order], moved), model(LINE.ids, WHERE)[:, order])


@pytest.mark.parametrize(
    ("positions", "distinguishes"),
    [("rope", True), ("t5", True), ("index-relative", True), ("alibi", False)],
)
def test_all_encodings_but_alibi_distinguish_directions(
    positions: str, distinguishes: bool
) -> None:
    model = random_model(positions)
    ids = torch.tensor([[3, 1, 4, 1, 5]])
    coordinates = coordinates_of_places([[0] * 5])
    mirrored = model(ids.flip(1), coordinates).flip(1)
    assert same(mirrored, model(ids, coordinates)) != distinguishes


# Labels -------------------------------------------------------------------------------------


@each_format
def test_the_labels_of_an_encoder_are_those_at_the_targets(name: str) -> None:
    rows = [(123, 45), (1, 2), (999, 1)]
    lines = written(name, rows)
    labels = teacher_forced(random_model(), lines).labels
    for number, row in enumerate(rows):
        kept_labels = labels[number][labels[number] != IGNORED].tolist()
        answer = [int(digit) for digit in reversed(str(sum(row)))]
        assert kept_labels == [*answer, EACH_FORMAT[name].end_id]


@each_format
def test_every_label_is_compared_with_the_logits_at_its_own_position(name: str) -> None:
    model = random_model(num_layers=2)
    lines = written(name, [(123, 45), (1, 2)])
    predictions = teacher_forced(model, lines)
    logits = model(lines.ids, coordinates_of(lines), path="dense")
    for row in range(2):
        columns = lines.target[row].nonzero()[:, 0]
        judged = predictions.labels[row] != IGNORED
        assert same(predictions.logits[row][judged], logits[row, columns])


@each_format
def test_an_encoder_does_not_see_the_labels(name: str) -> None:
    """123+45 and 122+46 have one answer; 123+45 and 123+46 have two."""
    model = random_model()
    lines = written(name, [(123, 45), (123, 46)])
    assert not torch.equal(lines.labels[0], lines.labels[1])
    swapped = AnnotatedTokens(
        lines.ids, lines.place, lines.field, lines.target, labels=lines.labels.flip(0)
    )
    assert torch.equal(teacher_forced(model, lines).logits, teacher_forced(model, swapped).logits)


@each_scheme
def test_shared_coordinates_change_nothing_for_lines_of_equal_lengths(positions: str) -> None:
    model = random_model(positions, num_layers=2)
    lines = written("parallel", [(123, 45), (678, 90), (500, 11)])
    shared = teacher_forced(model, lines, equal_lengths=True)
    own = teacher_forced(model, lines)
    assert torch.equal(shared.labels, own.labels)
    assert same(shared.logits, own.logits)


# What an encoder cannot do ------------------------------------------------------------------


def test_generating_with_an_encoder_is_refused_in_one_line() -> None:
    with pytest.raises(ConfigurationError) as caught:
        generate(
            random_model(),
            LINE,
            continue_lines(SLOTS, LINE, 3),
            3,
            SLOTS.end_id,
        )
    assert str(caught.value) == (
        "an encoder writes all answer tokens at once and does not generate them one by one. "
        "Let run.solve write its answers."
    )


def test_lines_without_labels_are_refused_in_one_line() -> None:
    lines = write(random_problems([(2, 3)]))
    with pytest.raises(ConfigurationError) as caught:
        teacher_forced(random_model(), lines)
    assert str(caught.value) == (
        "an encoder needs a format with parallel targets. Try --format parallel."
    )


# Learning -----------------------------------------------------------------------------------


@each_format
@pytest.mark.parametrize("positions", ["rope", "place-relative-soft", "t5", "abacus"])
def test_an_encoder_memorises_one_batch(positions: str, name: str) -> None:
    torch.manual_seed(0)
    config = ModelConfig(
        direction="both", width=32, num_heads=2, mlp_width=64, positions=POSITIONS[positions]
    )
    model = Transformer(config, len(EACH_FORMAT[name].vocabulary))
    lines = written(name, [(123, 45), (6, 78), (999, 1), (40, 50), (31, 415), (92, 653)])
    assert steps_to_learn(model, lines, loss_below=0.02, max_steps=300) is not None
    assert teacher_forced(model.eval(), lines).correct_tokens().all()
