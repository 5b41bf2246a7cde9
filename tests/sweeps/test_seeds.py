"""Many seeds: trained as if alone, examined, and summarised as a distribution."""

import contextlib
import json
import math
import signal
import subprocess
import sys
import time

import pytest
import torch
from safetensors.torch import load_file

import abacist
from abacist import files, generators, recipes
from abacist.configuration import override
from abacist.errors import RunError
from abacist.recipes.examinations import (
    DEFAULT,
    ArithmeticSample,
    Examination,
    SortingSample,
)
from abacist.runs import outcome as outcomes_of_seeds
from abacist.runs.examination import _draw_shapes, train_and_examine
from abacist.runs.outcome import Distribution, Outcome
from abacist.sweeps import plan as plans
from abacist.sweeps import sweep
from abacist.sweeps.local import LocalProcesses
from abacist.training import checkpoint, loop


def weights(path):
    return load_file(checkpoint.all_in(path / "checkpoints")[-1] / "model.safetensors")


def same(a, b):
    return a.keys() == b.keys() and all(torch.equal(a[name], b[name]) for name in a)


def test_seeds_are_trained_as_if_alone_and_reported_as_a_distribution(tmp_path, quick_settings):
    recipe = override(recipes.find("add"), quick_settings)
    calls = []
    plan = sweep.of_seeds(recipe, [3, 4], device="cpu")
    results = sweep.start(plan, tmp_path / "seeds", LocalProcesses(1), calls.append)
    distribution = results.groups[0].distribution
    alone = abacist.train("add", out=tmp_path / "alone", seed=4, settings=quick_settings)
    assert same(weights(tmp_path / "seeds" / "seed-4"), weights(alone.path))
    assert [outcome.seed for outcome in distribution.outcomes] == [3, 4]
    assert distribution.without_error.n == distribution.certified.n == 2
    assert calls[-1] == sweep.Progress(48, 48, distribution.outcomes, num_tuned=0, num_failed=0)
    data = distribution.to_json()
    assert data["worst_exact_match"] <= data["median_exact_match"]
    # A finished seed is not trained again, and one without an outcome is only examined again.
    (tmp_path / "seeds" / "seed-4" / "outcome.json").unlink()
    again = sweep.resume(tmp_path / "seeds", LocalProcesses(1)).groups[0].distribution
    assert again.outcomes[0] == distribution.outcomes[0]
    assert again.outcomes[1].rows == distribution.outcomes[1].rows
    assert again.outcomes[1].processor_seconds is None


def test_the_examination_of_a_record_has_its_own_samples(tmp_path, quick_settings):
    recipe = override(recipes.find("add"), quick_settings)
    examination = Examination(
        suites={"probes": {}}, samples=(ArithmeticSample("+", (4, 2), 20),), proved=False
    )
    outcome = train_and_examine(recipe, tmp_path / "run", 0, examination, 1, "cpu")
    *probes, sample = outcome.rows
    assert {row["suite"] for row in probes} == {"probes"}
    assert (sample["suite"], sample["name"], sample["n"]) == ("sample", "4 + 2 digits", 20)
    assert outcome.certificate is None
    assert (outcome.steps, outcome.batch_size, outcome.threads) == (24, 8, 1)
    assert [point["step"] for point in outcome.curve] == [0, 10, 20, 24]
    measured = {"loss", "validation_loss", "exact_match", "token_accuracy"}
    assert measured | {"training_token_accuracy"} <= outcome.curve[-1].keys()
    path = tmp_path / "outcome.json"
    path.write_text(json.dumps(outcome.to_json()))
    assert outcomes_of_seeds.read(path) == outcome


def test_the_samples_of_sorting_are_drawn_as_stated(tmp_path):
    settings = {"task.max_numbers": 3, "task.max_digits": 2, "task.sampling": "uniform"}
    few = {"num_steps": 2, "warmup_steps": 1, "curriculum": (), "decay_steps": None}
    few |= {"batch_size": 2, "validation_problems": 2}
    settings |= {f"training.{name}": value for name, value in few.items()}
    recipe = override(recipes.find("sort"), settings)
    examination = Examination(suites={}, samples=(SortingSample((4, 4), (2, 3), 10),))
    (row,) = train_and_examine(recipe, tmp_path / "run", 0, examination, 1, "cpu").rows
    assert (row["name"], row["n"], row["errors"]) == ("4 numbers of 2–3 digits", 10, 10)


def test_a_seed_that_diverges_has_an_outcome_that_says_why(tmp_path, quick_settings, monkeypatch):
    monkeypatch.setattr(loop, "training_step", lambda *_: math.nan)
    recipe = override(recipes.find("add"), quick_settings)
    outcome = train_and_examine(recipe, tmp_path / "run", 0, DEFAULT, 1, "cpu")
    assert outcome.failure.startswith("the loss is not finite at step 1")
    assert (outcome.rows, outcome.certificate, outcome.is_right) == ([], None, False)


def test_a_plan_of_another_version_is_refused(tmp_path):
    (tmp_path / "plan.json").write_text('{"seeds": [0]}')
    with pytest.raises(RunError, match=r"plan\.json has no format version and this abacist reads"):
        plans.read(tmp_path)


def test_a_sample_by_carry_chain_has_a_carry_through_every_digit(untrained):
    sample = ArithmeticSample("+", (6, 6), 50, "carry-chains")
    generator = generators.generator(0, "record", sample.name)
    task, shapes = _draw_shapes(sample, untrained.recipe, generator, count=62)
    problems = task.draw(shapes, generator)
    assert task.longest_carry_chain(problems).tolist() == [6] * len(problems)
    assert sample.name == "6 + 6 digits, a carry through every digit"


def _outcome(seed, steps_to_target, errors=0, failure=None):
    return Outcome(
        seed=seed,
        seconds=1.0,
        processor_seconds=None,
        steps=10,
        batch_size=1,
        threads=1,
        peak_memory_mib=None,
        parameters=1,
        steps_to_target=steps_to_target,
        curve=[],
        rows=[{"errors": errors, "n": 10}],
        certificate=None,
        circumstances={},
        failure=failure,
    )


def test_the_median_counts_seeds_that_never_reached_the_target_as_the_worst():
    def median(*steps):
        outcomes = [_outcome(seed, step) for seed, step in enumerate(steps)]
        return Distribution(outcomes).median(lambda outcome: outcome.steps_to_target)

    assert median(5, None, 3) == 5
    assert median(5, None, None) is None
    assert median(5, 4, 3, None) == 4.5
    assert median() is None


def test_a_seed_that_stopped_or_made_an_error_is_no_success():
    outcomes = [_outcome(0, 5), _outcome(1, None, 0, "the loss is not finite"), _outcome(2, 5, 1)]
    assert Distribution(outcomes).without_error.successes == 1


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_seeds_end_with_their_parent(tmp_path, quick_settings, number):
    settings = quick_settings | {"training.num_steps": 1_000_000}
    words = [word for name, value in settings.items() for word in (f"--{name}", str(value))]
    out = tmp_path / "seeds"
    command = [sys.executable, "-m", "abacist", "train", "add", "--seeds", "2", "--jobs", "1"]
    with subprocess.Popen([*command, "--out", str(out), *words]) as parent:
        while not list(out.glob("seed-0/checkpoints/step-*")):
            assert parent.poll() is None
            time.sleep(0.05)
        parent.send_signal(number)
    # The lock on a run ends with the process that trains it.
    wait_until_free(out / "seed-0")


def wait_until_free(path):
    for _ in range(100):
        with contextlib.suppress(RunError), files.locked(path):
            return
        time.sleep(0.1)
    raise AssertionError(f"{path} is still being trained")
