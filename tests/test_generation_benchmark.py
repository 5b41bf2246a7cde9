"""`benchmarks/generation.py` measures the time per token at every length."""

import importlib.util
import json
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def benchmark():
    path = ROOT / "benchmarks/generation.py"
    specification = importlib.util.spec_from_file_location("generation_benchmark", path)
    module = importlib.util.module_from_spec(specification)
    sys.modules["generation_benchmark"] = module
    specification.loader.exec_module(module)
    yield module
    del sys.modules["generation_benchmark"]


def test_the_slope_is_that_of_a_line_and_its_error_that_of_the_noise(benchmark):
    def times(slope, noise):
        return {
            digits: [(0.2 + slope * digits + sign * noise, 1.0) for sign in (-1, 1)]
            for digits in (1_000, 2_000, 3_000, 4_000)
        }

    exact = benchmark.slope(times(1e-5, 0))
    assert exact == {"microseconds_per_thousand_digits": 10, "standard_error": 0}
    noisy = benchmark.slope(times(0, 0.01))
    assert noisy["microseconds_per_thousand_digits"] == pytest.approx(0, abs=1e-9)
    # Residuals of 10 µs at 8 points: sqrt(8 · 10² / 6) / sqrt(Σ (length − mean)²), for 1,000 digits.
    assert noisy["standard_error"] == pytest.approx(11.547 / 10**0.5, rel=1e-3)
    assert benchmark.slope({250: [(0.2, 0.3)]}) is None


def test_the_best_repetition_is_reported(benchmark):
    assert benchmark.best({250: [(0.3, 0.9), (0.2, 1.0)]}) == [
        {
            "digits": 250,
            "processor_milliseconds_per_token": 0.2,
            "clock_milliseconds_per_token": 0.9,
        }
    ]


def test_the_documentation_states_the_committed_record():
    record = json.loads((ROOT / "results/generation.json").read_text())
    text = (ROOT / "docs/models.md").read_text()
    for row in record["one_line"]:
        milliseconds = row["processor_milliseconds_per_token"]
        assert f"| {row['digits']:,} digits | {milliseconds:.3f} ms |" in text
    longest, slope, gpt2 = record["longest"], record["slope"], record["gpt2"]
    assert f"{longest['processor_seconds']:.1f} s for the whole sum" in text
    assert f"took {longest['clock_seconds']:.1f} seconds of wall-clock time" in text
    change, noise = slope["microseconds_per_thousand_digits"], 1.96 * slope["standard_error"]
    assert f"changes by {change:.2f} ± {noise:.2f} µs".replace("-", "−") in text
    ours = record["one_line"][0]["processor_milliseconds_per_token"]
    for loop in ("generate", "plain_loop"):
        theirs = gpt2[f"processor_milliseconds_per_token_{loop}"]
        assert f"{theirs:.2f} ms" in text
        assert f"{theirs / ours:.1f} times as long" in text
    assert f"adds {record['three_digit_sums']['per_processor_second']:,} pairs" in text
