"""The speed of bounds on rounding: float64 matrices that carry them, and interval arithmetic beside them.

    python benchmarks/rounding.py [--side 128]

`certificates.rounding` evaluates a model in float64 and carries a bound beside every number. The
alternative is interval arithmetic with python-flint, which is left out unless it is installed
(`pip install python-flint`). Both are timed in turn, on one thread, and only their ratio means
something on a shared machine. A product counts once with its bound, although float64 needs three
products of matrices for the two.
"""

import argparse
import importlib.util
import random
import statistics
import time
from collections.abc import Callable

import torch
from torch import Tensor

UNIT = 2.0**-53
ULPS_OF_EXP = 4
REPEATS = 5


def product_with_bound(x: Tensor, error: Tensor, weight: Tensor) -> tuple[Tensor, Tensor]:
    """Return `x @ weight` and a bound on its error, where `x` has the given error."""
    terms = len(weight)
    gamma = terms * UNIT / (1 - terms * UNIT)
    size = weight.abs()
    return x @ weight, error @ size + gamma * (x.abs() @ size)


def exp_with_bound(x: Tensor, error: Tensor) -> tuple[Tensor, Tensor]:
    """Return exponentials and a bound on their errors, where `x` has the given error."""
    value = x.exp()
    return value, value * (error.expm1() * (1 + ULPS_OF_EXP * UNIT) + ULPS_OF_EXP * UNIT)


def seconds(action: Callable[[], object], repeats: int) -> float:
    """Return the processor seconds of an action, the mean of several."""
    begin = time.process_time()
    for _ in range(repeats):
        action()
    return (time.process_time() - begin) / repeats


def float64_actions(side: int) -> dict[str, Callable[[], object]]:
    """The two operations on matrices of `side` rows and columns, in float64 with bounds."""
    x, weight = torch.rand(2, side, side, dtype=torch.float64)
    error = UNIT * x
    return {
        "multiply-adds": lambda: product_with_bound(x, error, weight),
        "exponentials": lambda: exp_with_bound(x, error),
    }


def interval_actions(side: int) -> dict[str, Callable[[], object]]:
    """The same two operations in interval arithmetic."""
    flint = importlib.import_module("flint")

    x, weight = ([[random.random() for _ in range(side)] for _ in range(side)] for _ in range(2))
    left, right = flint.arb_mat(x), flint.arb_mat(weight)
    numbers = left.entries()
    return {
        "multiply-adds": lambda: left * right,
        "exponentials": lambda: [number.exp() for number in numbers],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--side", type=int, default=128, help="rows and columns of the matrices")
    side = parser.parse_args().side
    torch.set_num_threads(1)
    torch.manual_seed(0)
    count = {"multiply-adds": side**3, "exponentials": side**2}
    ways = {"float64 with bounds": float64_actions(side)}
    if importlib.util.find_spec("flint") is None:
        print("python-flint is not installed; pip install python-flint adds interval arithmetic")
    else:
        ways["interval arithmetic"] = interval_actions(side)
    repeats = {"float64 with bounds": 200, "interval arithmetic": 1}
    for what, n in count.items():
        times: dict[str, list[float]] = {way: [] for way in ways}
        for _ in range(REPEATS):
            for way, actions in ways.items():
                times[way].append(seconds(actions[what], repeats[way]))
        medians = {way: statistics.median(spent) for way, spent in times.items()}
        for way, median in medians.items():
            print(f"{what:14}{way:22}{n / median / 1e6:10,.1f} million per processor second")
        if len(medians) == 2:
            slow, fast = medians["interval arithmetic"], medians["float64 with bounds"]
            print(f"{what:14}{'ratio':22}{slow / fast:10,.1f}")


if __name__ == "__main__":
    main()
