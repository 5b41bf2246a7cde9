"""`benchmarks/sweeps.py` measures what a sweep costs beside its trials."""

import importlib.util
import json
import math
import subprocess
import sys
from pathlib import Path

import pytest

from abacist.configuration import override

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def benchmark():
    path = ROOT / "benchmarks/sweeps.py"
    specification = importlib.util.spec_from_file_location("sweeps_benchmark", path)
    module = importlib.util.module_from_spec(specification)
    sys.modules["sweeps_benchmark"] = module
    specification.loader.exec_module(module)
    yield module
    del sys.modules["sweeps_benchmark"]


def test_many_seeds_share_the_cores_unless_handing_them_out_takes_longer(benchmark):
    alone, first, each, seed = (
        benchmark.Cost(clock=clock, processor=processor, own=own)
        for clock, processor, own in ((2, 1, 1), (9, 7, 3), (4, 3, 0.1), (30, 18, 18))
    )
    figures = benchmark.comparison(alone, first, each, seed)
    assert figures == {
        "overhead_processor_seconds": 2,
        "overhead_clock_seconds": 2,
        "handing_out_processor_seconds": 0.1,
        "start_processor_seconds": 4,
        "start_clock_seconds": 5,
        "processor_hours_of_many_seeds": pytest.approx(1_000 * 20 / 3600, abs=0.005),
        "minutes_of_many_seeds": pytest.approx(1_000 * 20 / 64 / 60, abs=0.005),
    }
    slow = benchmark.Cost(clock=4, processor=3, own=1)
    minutes = benchmark.comparison(alone, first, slow, seed)["minutes_of_many_seeds"]
    assert minutes == pytest.approx(1_000 / 60, abs=0.005)


@pytest.mark.skipif(
    sys.platform != "linux", reason="processor seconds of others are known on Linux"
)
def test_processor_seconds_include_those_of_processes_that_nobody_waited_for(benchmark):
    busy = "import time\nwhile time.process_time() < 0.5: pass\nprint(0)"
    # As in Ray's processes, which ignore the ends of their children.
    parent = (
        "import signal, subprocess, sys; signal.signal(signal.SIGCHLD, signal.SIG_IGN)\n"
        f"subprocess.Popen([sys.executable, '-S', '-c', {busy!r}]).wait()"
    )

    def start_and_read():
        with subprocess.Popen(
            [sys.executable, "-S", "-c", parent], stdout=subprocess.PIPE
        ) as process:
            process.stdout.readline()

    cost = benchmark.cost(start_and_read)
    assert 0.3 <= cost.processor - cost.own <= 1


def test_the_record_has_figures_for_each_way(benchmark, quick_settings, tmp_path, monkeypatch):
    quick = override(benchmark.RECIPE, quick_settings)
    monkeypatch.setattr(benchmark, "RECIPE", quick)
    monkeypatch.setattr(benchmark, "SHORT", quick)
    # Ray takes too long for a test.
    monkeypatch.setattr(benchmark.importlib.util, "find_spec", lambda name: None)
    benchmark.main(["--trials", "1", "--out", str(tmp_path / "sweeps.json")])
    record = json.loads((tmp_path / "sweeps.json").read_text())
    assert "ray" not in record
    assert record["seed_processor_seconds"] > 0
    # Differences of two measurements, which noise may bring below zero.
    assert math.isfinite(record["local"]["start_processor_seconds"])
    assert math.isfinite(record["local"]["overhead_processor_seconds"])


def test_the_documentation_states_the_committed_record():
    record = json.loads((ROOT / "results/sweeps.json").read_text())
    text = (ROOT / "docs/scaling.md").read_text()
    local, ray = record["local"], record["ray"]
    for row in (
        f"| {local['overhead_processor_seconds']:.2f} | {ray['overhead_processor_seconds']:.2f} |",
        f"| {local['handing_out_processor_seconds']:.2f} | {ray['handing_out_processor_seconds']:.2f} |",
        f"| {local['start_processor_seconds']:.1f} | {ray['start_processor_seconds']:.1f} |",
        f"({local['overhead_clock_seconds']:.1f} and {ray['overhead_clock_seconds']:.0f} more for each",
        f"took {record['seed_processor_seconds']:.1f} processor seconds",
        f"cost {local['processor_hours_of_many_seeds']:.1f} processor hours with `--on local` and "
        f"{ray['processor_hours_of_many_seeds']:.1f} with",
        f"{local['minutes_of_many_seeds']:.1f} and {ray['minutes_of_many_seeds']:.1f} minutes on 64 cores",
    ):
        assert row in text
