import torch
from torch import Tensor

from abacist import generators


def numbers_drawn(*arguments: int | str) -> Tensor:
    seed, *purpose = arguments
    return torch.randint(0, 2**31, (8,), generator=generators.generator(int(seed), *purpose))


def test_a_generator_is_a_function_of_seed_and_purpose() -> None:
    assert torch.equal(numbers_drawn(3, "train", 12), numbers_drawn(3, "train", 12))


def test_seeds_purposes_and_blocks_have_different_streams() -> None:
    streams = [
        numbers_drawn(seed, purpose, block)
        for seed in range(3)
        for purpose in ("train", "validation")
        for block in range(20)
    ]
    assert len({tuple(stream.tolist()) for stream in streams}) == len(streams)


def test_similar_names_give_different_streams() -> None:
    streams = [
        numbers_drawn(1, "train", 12),
        numbers_drawn(11, "train", 2),
        numbers_drawn(1, "train", 1, 2),
        numbers_drawn(1),
    ]
    assert len({tuple(stream.tolist()) for stream in streams}) == 4


def test_global_random_state_is_neither_used_nor_changed() -> None:
    torch.manual_seed(0)
    first, after = numbers_drawn(0, "x"), torch.rand(1)
    torch.manual_seed(0)
    assert torch.equal(torch.rand(1), after)
    assert torch.equal(numbers_drawn(0, "x"), first)


def test_stored_seed_of_a_purpose_never_changes() -> None:
    assert generators.generator(0, "train", 12).initial_seed() == 1_317_564_666
