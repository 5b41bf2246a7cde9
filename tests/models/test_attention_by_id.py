"""Attention by ids gives the logits and the gradients of attention over all tokens."""

import pytest
import torch
from small_models import place_window, random_model, random_problems, write
from torch import Tensor, nn

from abacist.errors import ConfigurationError
from abacist.formats.annotated import AnnotatedTokens
from abacist.models.config import POSITIONS, PositionScheme
from abacist.models.coordinates import SchemeCoordinates
from abacist.models.teacher_forcing import IGNORED, Predictions, coordinates_of, teacher_forced
from abacist.models.transformer import Transformer
from abacist.models.views import KeyTable

RAGGED = [(1, 1), (3, 5), (7, 2), (1, 8)]
INDEX_WINDOW = PositionScheme(encoding="relative", coordinate="index", window=(-5, 0))
SETTINGS: dict[str, dict[str, object]] = {
    "place window": {"positions": POSITIONS["place-relative"]},
    # Two numbers a head: values are gathered, instead of the attention of each id being added up.
    "narrow heads": {"num_heads": 4, "head_width": 2},
    "index window": {"positions": (*place_window(0, 2), INDEX_WINDOW)},
    "normalised": {"query_key_norm": True, "norm_order": "post", "embedding_norm": True},
    "no biases": {"biases": (), "norm": "rms", "tied_head": True, "activation": "swiglu"},
    "encoder": {"direction": "both"},
}
each_model = pytest.mark.parametrize("settings", SETTINGS.values(), ids=SETTINGS)
both_lines = pytest.mark.parametrize("lengths", [RAGGED, [(5, 3)] * 4], ids=["ragged", "aligned"])


def lines_for(model: Transformer, lengths: list[tuple[int, int]]) -> AnnotatedTokens:
    lines = write(random_problems(lengths))
    # An encoder predicts labels; any will do.
    return lines if model.is_causal else AnnotatedTokens(**{**vars(lines), "labels": lines.ids})


def gradients(model: Transformer, predictions: Predictions) -> list[Tensor]:
    labels = predictions.labels.flatten()
    logits = predictions.logits.flatten(0, 1)
    loss = nn.functional.cross_entropy(logits, labels, ignore_index=IGNORED)
    return list(torch.autograd.grad(loss, list(model.parameters()), materialize_grads=True))


@each_model
@both_lines
def test_logits_and_gradients_are_those_of_all_pairs(
    settings: dict[str, object], lengths: list[tuple[int, int]]
) -> None:
    model = random_model(**settings)
    assert model.reads_ids_alone
    lines = lines_for(model, lengths)
    aligned = len(set(lengths)) == 1
    dense = teacher_forced(model, lines, equal_lengths=aligned, path="dense")
    expected_gradients = gradients(model, dense)
    for only_targets in (False, True):
        got = teacher_forced(model, lines, equal_lengths=aligned, only_targets=only_targets)
        kept, expected = got.labels != IGNORED, dense.labels != IGNORED
        torch.testing.assert_close(got.labels[kept], dense.labels[expected])
        torch.testing.assert_close(got.logits[kept], dense.logits[expected])
        for by_id, by_token in zip(gradients(model, got), expected_gradients, strict=True):
            torch.testing.assert_close(by_id, by_token, rtol=1e-7, atol=1e-9)


def test_hooks_and_further_recurrences_are_not_ignored_where_gradients_are_taken() -> None:
    model = random_model()
    lines = write(random_problems(RAGGED))
    coordinates, is_token, seen = coordinates_of(lines), lines.index >= 0, []

    def hook(name: str, value: Tensor) -> Tensor:
        seen.append(name)
        return value

    plain = model(lines.ids, coordinates)
    hooked = model(lines.ids, coordinates, hook=hook)
    torch.testing.assert_close(hooked[is_token], plain[is_token])
    assert "hook_embed" in seen
    twice = model(lines.ids, coordinates, recurrences=2)
    dense_twice = model(lines.ids, coordinates, path="dense", recurrences=2)
    torch.testing.assert_close(twice[is_token], dense_twice[is_token])
    assert not torch.allclose(twice[is_token], plain[is_token])
    with pytest.raises(ConfigurationError, match="recurrences must be 1 or more, got 0"):
        model(lines.ids, coordinates, recurrences=0)
    more = teacher_forced(model, lines, only_targets=True, recurrences=2)
    dense = teacher_forced(model, lines, path="dense", recurrences=2)
    is_target = dense.labels != IGNORED
    torch.testing.assert_close(more.logits[is_target], dense.logits[is_target])


def test_the_tokens_of_long_lines_are_sorted_into_one_table(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    model, lines = random_model(), write(random_problems([(150, 150)]))
    tables, key_table = [], model.key_table

    def counted(tokens: SchemeCoordinates) -> KeyTable | None:
        tables.append(key_table(tokens))
        return tables[-1]

    monkeypatch.setattr(model, "key_table", counted)
    by_id = model(lines.ids, coordinates_of(lines))
    assert [table is not None for table in tables] == [True]
    torch.testing.assert_close(by_id, model(lines.ids, coordinates_of(lines), path="dense"))


def test_tokens_without_a_label_are_left_out_where_lines_differ() -> None:
    model = random_model()
    lines = write(random_problems(RAGGED))
    predictions = teacher_forced(model, lines, only_targets=True)
    assert predictions.labels.shape == (int(lines.target.sum()), 1)


@pytest.mark.parametrize(
    "settings",
    [
        {"num_layers": 2},
        {"recurrences": 2},
        {"injection": "add"},
        {"dropout": 0.1},
        {"length_scaling": True},
        {"positions": POSITIONS["place-relative-soft"]},
        {"positions": (*place_window(0, 1), *POSITIONS["gpt2"])},
    ],
)
def test_models_whose_tokens_are_more_than_their_ids_do_not_use_it(
    settings: dict[str, object],
) -> None:
    model, lines = random_model(**settings), write(random_problems([(2, 2)]))
    assert not model.reads_ids_alone
    with pytest.raises(AssertionError, match="needs a model that reads ids alone"):
        model(lines.ids, coordinates_of(lines), path="by-id")
