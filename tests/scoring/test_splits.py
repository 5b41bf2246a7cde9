"""The suite `splits`: problems trained on, compared with others."""

from dataclasses import replace

import torch
from trained_models import ignored

from abacist.data.examples import Examples, first_problems
from abacist.data.split import hash_problems, in_split
from abacist.intervals import difference
from abacist.scoring.exact_match import exact_match
from abacist.scoring.measures import ALL, measure
from abacist.scoring.samples import as_in_training
from abacist.scoring.splits import SPLITS, _sample


def test_rows_are_of_their_splits(half_right):
    section = SPLITS.run(half_right, ignored)
    splits = ("train", "validation", "test")
    for row, tokens, split in zip(section.rows[:3], section.rows[3:], splits, strict=True):
        problems = as_in_training(half_right, 400, "splits", split)
        assert bool(in_split(problems, split, half_right.split).all())
        verdicts = exact_match(half_right, problems)
        assert row.proportion == verdicts.proportion
        assert (tokens.name, tokens.measure) == (f"{split} problems", "token accuracy")
        assert tokens.proportion == measure(half_right, problems)[ALL].token_accuracy
    train, _, test = (row.proportion for row in section.rows[:3])
    assert section.details["train_minus_test"] == difference(train, test).to_json()


def test_a_fixed_training_set_is_scored_on_its_own_problems(half_right):
    fixed = replace(half_right, examples=Examples(500))
    sample = _sample(fixed, "train", 400)
    trained = first_problems(fixed.task, fixed.split, 500, fixed.seed)
    hashes = hash_problems(sample, ordered=True)
    assert len(sample) == 400
    assert bool(torch.isin(hashes, hash_problems(trained, ordered=True)).all())


def test_the_sample_of_a_balanced_training_set_has_all_lengths(half_right):
    fixed = replace(half_right, examples=Examples(500, balanced=True))
    sample, longest = _sample(fixed, "train", 100), half_right.task.config.max_digits
    assert len(sample) == 100
    assert set(sample.lengths_BN.flatten().tolist()) == set(range(1, longest + 1))
