"""Looped models: the same layers run several times."""

from collections.abc import Callable

import pytest
import torch
from reference_model import reference_logits
from small_models import (
    FORMAT,
    SCHEME_NAMES,
    ids_of,
    place_window,
    random_model,
    random_problems,
    write,
)
from test_decoding import assert_equals_uncached, never_write
from torch import Tensor

from abacist.errors import ConfigurationError
from abacist.models.config import POSITIONS, PositionScheme
from abacist.models.teacher_forcing import IGNORED, coordinates_of, teacher_forced
from abacist.models.transformer import Path, Transformer

INJECTIONS = ["none", "add", "linear", "sublayers"]
each_injection = pytest.mark.parametrize("injection", INJECTIONS)
each_scheme = pytest.mark.parametrize("positions", SCHEME_NAMES)
LINE = ids_of("<start>214+43=75")
WHERE = coordinates_of(FORMAT.annotate(LINE))


def same(a: Tensor, b: Tensor) -> None:
    torch.testing.assert_close(a, b, rtol=1e-9, atol=1e-9)


def unrolled(looped: Transformer, recurrences: int) -> Transformer:
    """A model that runs once, with a copy of the looped one's layers for every recurrence."""
    num_layers = len(looped.blocks)
    settings = {
        name: getattr(looped.config, name)
        for name in ("norm", "norm_order", "activation", "final_norm", "length_scaling")
    }
    model = random_model(
        looped.schemes, num_layers=num_layers * recurrences, recurrences=1, **settings
    )
    weights = looped.state_dict()
    for name in model.state_dict():
        if name.startswith("blocks."):
            _, layer, rest = name.split(".", 2)
            weights[name] = weights[f"blocks.{int(layer) % num_layers}.{rest}"]
    model.load_state_dict(weights)
    return model


@each_scheme
def test_a_looped_model_equals_the_unrolled_one(positions: str) -> None:
    looped = random_model(positions, num_layers=2, recurrences=3)
    same(looped(LINE, WHERE), unrolled(looped, 3)(LINE, WHERE))


@pytest.mark.parametrize(
    "settings",
    [
        {"norm_order": "post"},
        {"norm": "rms", "final_norm": False},
        {"activation": "geglu", "length_scaling": True},
    ],
)
def test_a_looped_model_of_other_parts_equals_the_unrolled_one(settings: dict) -> None:
    looped = random_model(num_layers=2, recurrences=3, **settings)
    same(looped(LINE, WHERE), unrolled(looped, 3)(LINE, WHERE))


@pytest.mark.parametrize("path", ["dense", "windowed"])
def test_the_tail_of_a_looped_model_equals_that_of_the_unrolled_one(path: Path) -> None:
    looped = random_model(place_window(-1, 1), num_layers=2, recurrences=3)
    whole = unrolled(looped, 3)(LINE, WHERE)
    for first in (1, 6, LINE.shape[1] - 1):
        same(looped(LINE, WHERE, first=first, path=path), whole[:, first:])


@pytest.mark.parametrize("recurrences", [1, 2, 5])
def test_a_model_can_run_with_more_or_fewer_recurrences_than_configured(
    recurrences: int,
) -> None:
    looped = random_model(num_layers=2, recurrences=3)
    same(looped(LINE, WHERE, recurrences=recurrences), unrolled(looped, recurrences)(LINE, WHERE))


@each_injection
@pytest.mark.parametrize("recurrences", [1, 4])
def test_the_input_is_injected_in_every_recurrence_for_any_number_of_them(
    injection: str, recurrences: int
) -> None:
    model = random_model("fire", recurrences=2, injection=injection)
    expected = reference_logits(model, LINE, WHERE, recurrences=recurrences)
    same(model(LINE, WHERE, recurrences=recurrences), expected)
    assert not torch.allclose(model(LINE, WHERE), expected)


def test_one_recurrence_equals_a_model_without_loop() -> None:
    once, looped = random_model(num_layers=2), random_model(num_layers=2, recurrences=1)
    assert torch.equal(once(LINE, WHERE), looped(LINE, WHERE))
    assert torch.equal(once(LINE, WHERE), once(LINE, WHERE, recurrences=1))


@each_injection
def test_recurrences_share_their_weights(injection: str) -> None:
    once, thrice = (random_model(recurrences=n, injection=injection) for n in (1, 3))
    assert once.num_parameters == thrice.num_parameters
    assert thrice.depth == 3 * once.depth
    assert len(thrice.visibility(WHERE)) == 3


@pytest.mark.parametrize("path", ["dense", "windowed"])
@pytest.mark.parametrize("first", [5, LINE.shape[1] - 1])
def test_the_tail_of_a_model_run_more_often_than_configured_is_that_of_a_full_pass(
    first: int, path: Path
) -> None:
    model = random_model("place-relative")
    whole = model(LINE, WHERE, recurrences=3, path=path)
    same(model(LINE, WHERE, first=first, recurrences=3, path=path), whole[:, first:])


@pytest.mark.parametrize("recurrences", [0, -1])
def test_fewer_than_one_recurrence_is_refused(recurrences: int) -> None:
    model = random_model(recurrences=2)
    with pytest.raises(ConfigurationError) as caught:
        model(LINE, WHERE, recurrences=recurrences)
    assert str(caught.value) == f"recurrences must be 1 or more, got {recurrences}."


def test_teacher_forcing_passes_recurrences_to_the_model() -> None:
    model = random_model(recurrences=2, injection="add")
    lines = write(random_problems([(3, 2), (1, 4)]))
    predictions = teacher_forced(model, lines, recurrences=4)
    expected = reference_logits(model, lines.ids[:, :-1], coordinates_of(lines[:, :-1]), 4)
    predicting = predictions.labels != IGNORED
    tail = expected[:, -predictions.logits.shape[1] :]
    same(predictions.logits[predicting], tail[predicting])


# Recurrences without gradient ---------------------------------------------------------------


def gradients(model: Transformer, run: Callable[[], Tensor]) -> dict[str, Tensor]:
    """Gradients of a fixed weighted sum of the logits; 0 where none arrives."""
    logits = run()
    weights = torch.linspace(-1, 1, logits.numel(), dtype=logits.dtype).view_as(logits)
    names, parameters = zip(*model.named_parameters(), strict=True)
    parts = torch.autograd.grad((logits * weights).sum(), parameters, allow_unused=True)
    return {
        name: torch.zeros_like(parameter) if gradient is None else gradient
        for name, parameter, gradient in zip(names, parameters, parts, strict=True)
    }


@each_injection
@pytest.mark.parametrize("detached", [0, 1, 2])
def test_detached_recurrences_change_no_logit(injection: str, detached: int) -> None:
    model = random_model(recurrences=3, injection=injection)
    same(model(LINE, WHERE, num_detached=detached), model(LINE, WHERE))


def test_detached_recurrences_give_no_gradient_to_the_layers_unrolled() -> None:
    looped = random_model("t5", num_layers=2, recurrences=5)
    copies = unrolled(looped, 5)
    copies.blocks[2 * 2 - 1].register_forward_hook(lambda block, inputs, out: out.detach())
    actual = gradients(looped, lambda: looped(LINE, WHERE, num_detached=2))
    apart = gradients(copies, lambda: copies(LINE, WHERE))
    for name in actual:
        expected = apart[name]
        if name.startswith("blocks."):
            _, layer, rest = name.split(".", 2)
            expected = sum(apart[f"blocks.{number}.{rest}"] for number in range(int(layer), 10, 2))
        same(actual[name], expected)
    assert not actual["embedding.weight"].any()
    assert actual["blocks.0.attention.query.weight"].any()


@pytest.mark.parametrize(
    ("injection", "initial_state"),
    [*((name, "input") for name in INJECTIONS), *((name, "noise") for name in INJECTIONS[1:])],
)
@pytest.mark.parametrize("detached", [1, 2])
def test_the_gradient_is_that_of_starting_from_the_detached_state(
    monkeypatch: pytest.MonkeyPatch, injection: str, initial_state: str, detached: int
) -> None:
    model = random_model(recurrences=3, injection=injection, initial_state=initial_state)
    actual = gradients(model, lambda: model(LINE, WHERE, num_detached=detached))
    begin_recurrence, recurrence = model.begin_recurrence, 0

    def begin_recurrence_detached(state: Tensor, embedded: Tensor) -> tuple[Tensor, Tensor | None]:
        nonlocal recurrence
        recurrence += 1
        return begin_recurrence(state.detach() if recurrence == detached + 1 else state, embedded)

    monkeypatch.setattr(model, "begin_recurrence", begin_recurrence_detached)
    expected = gradients(model, lambda: model(LINE, WHERE))
    for name in actual:
        same(actual[name], expected[name])
    # The embedded input is injected again, and learns by that.
    assert bool(actual["embedding.weight"].any()) == (injection != "none")


def test_with_all_recurrences_detached_only_the_head_learns() -> None:
    model = random_model(recurrences=2, injection="add")
    actual = gradients(model, lambda: model(LINE, WHERE, num_detached=2))
    learning = {name.split(".")[0] for name, gradient in actual.items() if gradient.any()}
    assert learning == {"final_norm", "head"}


def test_detaching_does_not_enable_gradients_under_no_grad() -> None:
    model = random_model(recurrences=2)
    with torch.no_grad():
        assert not model(LINE, WHERE, num_detached=1).requires_grad


# Initial states -----------------------------------------------------------------------------


def noisy(injection: str = "add", recurrences: int = 2) -> Transformer:
    return random_model(initial_state="noise", injection=injection, recurrences=recurrences)


@pytest.mark.parametrize("injection", INJECTIONS[1:])
def test_without_a_generator_a_model_that_starts_from_noise_starts_from_zeros(
    injection: str,
) -> None:
    model = noisy(injection)
    zeros = torch.zeros(LINE.shape[1], 1, model.config.width, dtype=torch.float64)
    same(model(LINE, WHERE), reference_logits(model, LINE, WHERE, initial=zeros))


def test_with_a_generator_noise_changes_the_logits_and_is_repeatable() -> None:
    model = noisy()
    first, again, other = (
        model(LINE, WHERE, generator=torch.Generator().manual_seed(seed)) for seed in (1, 1, 2)
    )
    assert torch.equal(first, again)
    assert not torch.allclose(first, other)
    assert not torch.allclose(first, model(LINE, WHERE))


def test_noise_is_small_and_differs_between_numbers() -> None:
    model = noisy()
    embedded = torch.ones(40, 20, model.config.width, dtype=torch.float64)
    state = model.initial_state(embedded, torch.Generator().manual_seed(0))
    assert state.dtype == embedded.dtype
    assert state.std().item() == pytest.approx(0.02, rel=0.05)
    assert state.mean().abs().item() < 0.001
    assert len(state.unique()) == state.numel()


def test_a_generator_changes_nothing_for_a_model_that_starts_from_its_input() -> None:
    model = random_model(recurrences=2, injection="add")
    seeded = model(LINE, WHERE, generator=torch.Generator().manual_seed(0))
    assert torch.equal(seeded, model(LINE, WHERE))


# Generation ---------------------------------------------------------------------------------

GENERATING = {
    **{name: POSITIONS[name] for name in ("place-relative", "rope", "abacus-fire")},
    "learned in every layer": (
        PositionScheme(encoding="learned", coordinate="place", added_to="queries-keys"),
        PositionScheme(encoding="alibi", coordinate="index"),
    ),
}
each_generating = pytest.mark.parametrize("positions", GENERATING.values(), ids=GENERATING.keys())


@each_injection
@each_generating
def test_cached_generation_of_a_looped_model_equals_uncached(
    positions: tuple[PositionScheme, ...], injection: str
) -> None:
    model = random_model(
        positions, seed=1, num_layers=2, recurrences=3, injection=injection, norm_order="post"
    )
    never_write(model, FORMAT.start_id, FORMAT.end_id)
    assert_equals_uncached(model, random_problems([(1, 1), (3, 5), (8, 2)]), max_new_tokens=6)


@pytest.mark.parametrize("injection", INJECTIONS[1:])
def test_cached_generation_from_zeros_equals_uncached(injection: str) -> None:
    model = noisy(injection, recurrences=3)
    never_write(model, FORMAT.start_id, FORMAT.end_id)
    assert_equals_uncached(model, random_problems([(1, 1), (3, 5)]), max_new_tokens=6)


@each_injection
def test_cached_generation_of_a_looped_model_equals_uncached_beyond_64_tokens(
    injection: str,
) -> None:
    model = random_model(
        seed=3, recurrences=2, injection=injection, query_key_norm=True, length_scaling=True
    )
    never_write(model, FORMAT.start_id, FORMAT.end_id)
    problems = random_problems([(31, 33), (2, 3)])
    assert FORMAT.prompt(problems).ids.shape[1] > 64
    assert_equals_uncached(model, problems, max_new_tokens=4)
