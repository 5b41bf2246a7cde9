import pytest
import torch
from small_models import FORMAT, random_model, random_problems

from abacist.errors import ConfigurationError
from abacist.formats.continuation import continue_lines
from abacist.models.decoding import Sampling, generate


def sampling(seed: int = 0, **settings: float) -> Sampling:
    return Sampling(torch.Generator().manual_seed(seed), **settings)


def written(sampler: Sampling | None) -> list[list[int]]:
    prompt = FORMAT.prompt(random_problems([(3, 4)] * 6))
    generated = generate(
        random_model(),
        prompt,
        continue_lines(FORMAT, prompt, 6),
        max_new_tokens=6,
        end_id=FORMAT.end_id,
        sampling=sampler,
    )
    return generated.ids.tolist()


def test_drawing_among_the_one_likeliest_token_is_greedy() -> None:
    assert written(sampling(top_k=1)) == written(None)


def test_a_very_low_temperature_is_greedy() -> None:
    assert written(sampling(temperature=1e-6)) == written(None)


def test_a_seed_repeats_the_drawn_tokens_and_another_seed_does_not() -> None:
    first, again, other = (written(sampling(seed, temperature=2.0)) for seed in (1, 1, 2))
    assert first == again
    assert first != other


def test_tokens_are_drawn_by_their_probabilities() -> None:
    logits = torch.tensor([0.5, 0.3, 0.2]).log().expand(20_000, -1)
    shares = torch.bincount(sampling().draw(logits), minlength=3) / 20_000
    torch.testing.assert_close(shares, torch.tensor([0.5, 0.3, 0.2]), atol=0.02, rtol=0)


def test_no_token_below_the_likeliest_k_is_drawn() -> None:
    logits = torch.tensor([1.0, 3.0, 2.0, 0.0]).expand(2_000, -1)
    assert set(sampling(top_k=2).draw(logits).tolist()) == {1, 2}
    assert set(sampling(top_k=9).draw(logits).tolist()) == {0, 1, 2, 3}


@pytest.mark.parametrize("settings", [{"temperature": 0.0}, {"temperature": -1.0}, {"top_k": 0}])
def test_meaningless_settings_are_refused(settings: dict[str, float]) -> None:
    with pytest.raises(ConfigurationError, match="must be"):
        sampling(**settings)
