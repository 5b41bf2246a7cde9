"""Check, without trusting abacist, that a trained model adds or subtracts without a mistake.

    python checker/check_certificate.py RUN

This file shares no code with the package: it was written from the documentation, needs only NumPy and
safetensors, and is meant to be read from top to bottom. It covers sums and differences of two numbers
of any length; `check_written_work.py` adds the other calculations. The argument, for sums:

The model. A line such as `<start>21+43=64<end>` (12 + 34 = 46, units first) is written token by
token: the next token is the one with the largest logit at the last token so far. Every token has a
*place*: 1 for units, 2 for tens and so on, 0 for `=`. The operator stands in no place, and the
start token in all of them. The only layer has a *window*: a token attends to itself, to the start token,
and to earlier tokens of its own place p and of the next, p + 1. The model learns where a token stands
from nothing but a bias on attention scores, which depends on the *difference* of two places. (A model
may have *rows* as well, 1 for a, 2 for b and 3 for the answer, and a bias for their differences.)

The neighbourhood. So the logits at the last token are a function of the few tokens that it sees, with
their relative places and rows: its *neighbourhood*. Nothing else enters, and there are finitely many.

The enumeration. A digit of a sum that has just been written in column p sees itself, the start token, and
the digits of a and b in columns p and p + 1, as far as there are any. Each operand goes on into column
p + 1, ends in column p, or has ended before; it does not end with a leading 0 unless it is the
number 0. The carry into column p is 0 or 1, and 0 if p = 1. `Columns.neighbourhoods` runs through all
these cases and calculates for each the digit that was written and the token that must follow.

The check. The model, which `Model.logits` writes down as on a blackboard, is run on every neighbourhood.
The *margin* is the logit of the right token minus the largest other logit; all must be positive.

The induction. Suppose that the first k tokens after `=` are right. Then the neighbourhood of the last
token is one of those listed, so the next token is right as well. So all tokens are, up to `<end>`.

What could be wrong here? The enumeration could have a gap, or a token could see something else than is
claimed. Against both, `decode` writes the answers to 1,000 random problems, with places and masks over
whole lines, and compares them with Python's integers; it must meet listed neighbourhoods only. And
float64 rounds, so a margin must exceed `LEAST_MARGIN`, far more than rounding in sums of a few hundred
terms amounts to. Other precisions add rounding errors of their own, which are not examined here.

The exit code is 0 if certified, 1 if not, and 2 if the run cannot be checked (one line says why).
"""

import hashlib
import json
import math
import random
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from safetensors.numpy import load

LEAST_MARGIN = 1e-6
NUM_PROBLEMS = 1_000
GATED = ("geglu", "swiglu")
START, END, DIGITS = "<start>", "<end>", "0123456789"
EVERYWHERE, NOWHERE = -2, -1  # coordinates of a token that stands in all columns, or in none
Array = np.ndarray[Any, Any]
Windows = dict[str, tuple[int, int]]


class CannotCheckError(Exception):
    """The run cannot be read, or it is of a kind that this program does not cover."""


class Token(NamedTuple):
    """A token and where it stands."""

    text: str
    place: int
    row: int
    step: int = NOWHERE


FIRST = Token(START, EVERYWHERE, EVERYWHERE, EVERYWHERE)
shared = cache(Token)  # equal tokens are one object, which saves memory


# The model ----------------------------------------------------------------------------------
# Shapes: N lines (or neighbourhoods), T tokens, the last Q of them queries, H heads, V vocabulary.


@dataclass(frozen=True)
class Model:
    """A transformer of one layer: weights in float64, and the settings that say how they are used."""

    weights: dict[str, Array]
    settings: dict[str, Any]
    windows: Windows
    vocabulary: tuple[str, ...]

    def linear(self, name: str, x: Array) -> Array:
        """W x + b, or W x where the map has no bias."""
        return x @ self.weights[f"{name}.weight"].T + self.weights.get(f"{name}.bias", 0.0)

    def norm(self, name: str, x: Array) -> Array:
        """RMSNorm or LayerNorm over the width, or x itself where the settings leave this one out."""
        if not self.settings.get(name, True):
            return x
        gain, epsilon = self.weights[f"{name}.weight"], self.settings["norm_epsilon"]
        if self.settings["norm"] == "rms":
            return x / np.sqrt((x**2).mean(-1, keepdims=True) + (epsilon or 1e-6)) * gain
        centred = x - x.mean(-1, keepdims=True)
        variance = (centred**2).mean(-1, keepdims=True)
        return centred / np.sqrt(variance + (epsilon or 1e-5)) * gain + self.weights[f"{name}.bias"]

    def activation(self, x: Array) -> Array:
        """ReLU, or x times a share from 0 to 1: the exact GELU, its tanh form, or SiLU in `swiglu`."""
        match self.settings["activation"]:
            case "relu":
                return np.maximum(x, 0.0)
            case "gelu-tanh":
                share = np.tanh((2 / math.pi) ** 0.5 * (x + 0.044715 * x**3))
            case "swiglu":
                share = np.tanh(x / 2)  # SiLU is x / (1 + e^-x)
            case _:
                share = np.fromiter(map(math.erf, x.ravel() / 2**0.5), float).reshape(x.shape)
        return x * (1 + share) / 2

    def mlp(self, name: str, x: Array) -> Array:
        """One hidden layer, which a second map of x multiplies in `geglu` and `swiglu`."""
        hidden = self.activation(self.linear(f"{name}.up", x))
        if self.settings["activation"] in GATED:
            hidden = hidden * self.linear(f"{name}.gate", x)
        return self.linear(f"{name}.down", hidden)

    def relate(self, lines: list[tuple[Token, ...]], queries: int) -> tuple[Array, list[Array]]:
        """Which tokens the last tokens see, bool (N, Q, T), and a row of each bias table, (N, Q, T).

        A token sees itself, and of the tokens before it those that every window lets through: tokens
        that stand everywhere, and those whose coordinate minus its own lies in the window. A bias
        table has a row for each such difference, and a last one for pairs without a difference.
        """
        index = np.arange(len(lines[0]))
        seen, rows = index <= index[-queries:, None], []
        for name, (low, high) in self.windows.items():
            values = np.array([[getattr(token, name) for token in line] for line in lines])
            query, key = values[:, -queries:, None], values[:, None, :]
            both = (query >= 0) & (key >= 0)
            inside = both & (key - query >= low) & (key - query <= high)
            seen = seen & (inside | (key == EVERYWHERE) | (index == index[-queries:, None]))
            rows.append(np.where(both, np.clip(key - query, low, high) - low, high - low + 1))
        return seen, rows

    def logits(self, lines: list[tuple[Token, ...]], queries: int) -> Array:
        """Logits (N, Q, V) at the last Q tokens of lines of one length."""
        rank = {token: number for number, token in enumerate(self.vocabulary)}
        ids = np.array([[rank[token.text] for token in line] for line in lines])
        seen, rows = self.relate(lines, queries)
        attention, heads = "blocks.0.attention", self.settings["num_heads"]

        embedded = self.norm("embedding_norm", self.weights["embedding.weight"][ids])
        normed = self.norm("blocks.0.attention_norm", embedded)
        query = self.linear(f"{attention}.query", normed[:, -queries:])
        key = self.linear(f"{attention}.key", normed)
        value = self.linear(f"{attention}.value", normed)
        query, key, value = (x.reshape(*x.shape[:2], heads, -1) for x in (query, key, value))

        scores = np.einsum("nqhk,nthk->nqth", query, key) / math.sqrt(query.shape[-1])
        for number, row in enumerate(rows):
            scores = scores + self.weights[f"{attention}.relative.{number}.table"][row]
        scores = np.where(seen[..., None], scores, -np.inf)
        pattern = np.exp(scores - scores.max(axis=2, keepdims=True))
        pattern = pattern / pattern.sum(axis=2, keepdims=True)
        mixed = np.einsum("nqth,nthk->nqhk", pattern, value).reshape(*ids[:, -queries:].shape, -1)

        residual = embedded[:, -queries:] + self.linear(f"{attention}.output", mixed)
        residual = residual + self.mlp("blocks.0.mlp", self.norm("blocks.0.mlp_norm", residual))
        if self.settings["final_mlp"]:
            residual = self.mlp("final_mlp", residual)
        return self.linear("head", self.norm("final_norm", residual))


# What is calculated -------------------------------------------------------------------------


class Neighbourhood(NamedTuple):
    """The tokens that the last of them sees, in the order of the line, and what must follow."""

    seen: tuple[Token, ...]
    right: str
    words: str


def neighbourhood(right: str, parts: dict[str, tuple[Any, ...]]) -> Neighbourhood:
    """The start token and the named tokens; those whose text is None are not there."""
    tokens = {name: shared(str(t), *where) for name, (t, *where) in parts.items() if t is not None}
    words = ", ".join(f"{name} {token.text}" for name, token in tokens.items())
    return Neighbourhood((FIRST, *tokens.values()), right, words)


def random_number(generator: random.Random, most_digits: int) -> str:
    """A number of any length up to this one; half of them are rich in 0 and 9, for long carries."""
    choices = generator.choice([DIGITS, DIGITS + "0999999999"])
    return str(int("".join(generator.choices(choices, k=generator.randint(1, most_digits)))))


class Columns:
    """Sums, and differences: `<start>54-321=229-<end>` says that 45 - 123 is 922 - 1000.

    Differences are written modulo 10^W, where W is the number of digits of the longer operand, and
    `-` is written where a borrow is left over. Column i is place i, or place i times the `spacing`.
    """

    most_tokens = 40

    def __init__(self, operation: str, spacing: int = 1) -> None:
        is_sum = operation == "+"
        self.operation, self.spacing = operation, spacing
        self.sign, self.left_over = (1, "1") if is_sum else (-1, "-")
        verb, self.problems = ("adds", "sums") if is_sum else ("subtracts", "differences")
        self.claim = f"{verb} all pairs of non-negative integers of every length"
        self.vocabulary = (*DIGITS, operation, "=", END, START)
        with_rows: Windows = {"place": (0, 1), "row": (-2, 0)}
        # The rows tell a from b, which a sum does not need.
        self.windows = [{"place": (0, 1)}, with_rows] if is_sum else [with_rows]
        # fmt: off
        self.task = {
            "kind": ["arithmetic"], "operations": [[operation]], "min_operands": [2], "max_operands": [2],
            "weights": None, "min_digits": None, "max_digits": None, "sampling": None,
            "operand_digits": None, "carry_chains": None, "signed": [False],
        }
        self.format = {
            "kind": ["plain"], "start_token": [True], "end": ["token"], "padding_token": [False],
            "operand_order": ["reversed"], "answer_order": ["reversed"], "operand_padding": ["none"],
            "answer_padding": ["none" if is_sum else "longest"], "spaces": ["none"],
            "negative": ["sign-first" if is_sum else "complement"], "unused_tokens": [[]],
        }
        # fmt: on

    def neighbourhoods(self) -> Iterator[Neighbourhood]:
        """Everything that can stand in two columns: 1 and 2, as only differences count."""
        one, two = self.spacing, 2 * self.spacing  # their places
        for x, y in product(range(10), repeat=2):
            seen = {"units of a": (x, one, 1), "units of b": (y, one, 2), "last token": ("=", 0, 3)}
            yield neighbourhood(str((x + self.sign * y) % 10), seen)
        for is_first in (True, False):
            columns, carries = self.columns(is_first), (0,) if is_first else (0, 1)
            for (a, a_next), (b, b_next), carry in product(columns, columns, carries):
                carry_out, digit = divmod((a or 0) + self.sign * ((b or 0) + carry), 10)
                following = (a_next or 0) + self.sign * (b_next or 0) + carry_out
                written, right = str(digit), str(following % 10)
                if a is None and b is None:
                    if carry == 0:
                        continue  # the line ended before this column
                    written, right = self.left_over, END
                elif a_next is None and b_next is None:
                    right = self.left_over if carry_out else END
                seen = {"a in this column": (a, one, 1), "a in the next": (a_next, two, 1)}
                seen |= {"b in this column": (b, one, 2), "b in the next": (b_next, two, 2)}
                yield neighbourhood(right, seen | {"last token": (written, one, 3)})

    def columns(self, is_first: bool) -> list[tuple[int | None, int | None]]:
        """The digits that an operand can have here and in the next column; None where it has none."""
        ends = [(digit, None) for digit in range(0 if is_first else 1, 10)]
        return [*product(range(10), repeat=2), *ends, *([] if is_first else [(None, None)])]

    def random_problem(self, generator: random.Random) -> str:
        return self.operation.join(random_number(generator, 30) for _ in range(2))

    def prompt(self, problem: str) -> list[Token]:
        a, b = (
            [Token(x, self.spacing * i, row) for i, x in enumerate(reversed(number), start=1)]
            for row, number in enumerate(problem.split(self.operation), start=1)
        )
        return [FIRST, *a, Token(self.operation, NOWHERE, NOWHERE), *b, Token("=", 0, 3)]

    def next(self, line: list[Token], text: str) -> Token:
        return Token(text, line[-1].place + self.spacing, 3)

    def is_right(self, problem: str, written: list[str]) -> bool:
        a, b = problem.split(self.operation)
        if self.operation == "+":
            return "".join(written) == str(int(a) + int(b))[::-1] + END
        width = max(len(a), len(b))
        digits = str((int(a) - int(b)) % 10**width).zfill(width)[::-1]
        return "".join(written) == digits + "-" * (int(a) < int(b)) + END


# The check ----------------------------------------------------------------------------------


class Checked(NamedTuple):
    """A neighbourhood, what the model writes after it, and the margin of what it should write."""

    case: Neighbourhood
    writes: str
    margin: float


def check(model: Model, cases: Iterator[Neighbourhood]) -> list[Checked]:
    """Run the model on every neighbourhood once, those of equally many tokens side by side."""
    by_size, checked = dict[int, dict[Any, Neighbourhood]](), list[Checked]()
    for case in cases:
        by_size.setdefault(len(case.seen), {})[case.seen, case.right] = case
    for distinct in by_size.values():
        for start in range(0, len(distinct), 4096):
            part = [*distinct.values()][start : start + 4096]
            lines = [case.seen for case in part]
            if not model.relate(lines, queries=1)[0].all():
                raise CannotCheckError(f"a token is listed as seen and is not: {lines[0]}.")
            logits = model.logits(lines, queries=1)[:, 0]
            right = np.arange(len(part)), [model.vocabulary.index(case.right) for case in part]
            writes = [model.vocabulary[token] for token in logits.argmax(axis=1)]
            right_logits, logits[right] = logits[right], -np.inf
            checked += map(Checked, part, writes, (right_logits - logits.max(axis=1)).tolist())
    return checked


@cache  # each token is listed thousands of times
def _apart(token: Token, last: Token) -> tuple[Any, ...]:
    return token[0], *map(lambda k, q: k - q if min(k, q) >= 0 else None, token[1:], last[1:])


def relative(seen: list[Token] | tuple[Token, ...]) -> tuple[Any, ...]:
    """Tokens with their coordinates relative to the last one's: all that a model is given."""
    return tuple(_apart(token, seen[-1]) for token in seen)


def decode(
    model: Model, prompt: list[Token], task: Columns, known: dict[Any, str], met: set[Any]
) -> list[str]:
    """Write what follows a prompt token by token, and add the neighbourhoods on the way to `met`.

    `known` holds what the model writes after each listed neighbourhood; another one ends the line.
    At last the model reads the line as a whole, and must choose the same tokens once more.
    """
    line, written = [*prompt], list[str]()
    while END not in written and len(written) < task.most_tokens:
        sees = model.relate([tuple(line)], queries=1)[0][0, 0]
        key = relative([token for token, is_seen in zip(line, sees, strict=True) if is_seen])
        met.add(key)
        if key not in known:
            break
        written.append(known[key])
        line.append(task.next(line, known[key]))
    logits = model.logits([tuple(line[:-1])], queries=len(written))[0]
    at_once = [model.vocabulary[token] for token in logits.argmax(axis=1)]
    return written if written == at_once else ["other tokens when read as a whole"]


def report(directory: Path, covered: list[Columns]) -> int:
    """Check a run, print the outcome, and return the exit code."""
    task, model, file, digest = read_run(directory, covered)
    checked = check(model, task.neighbourhoods())
    wrong = [result for result in checked if not result.margin > LEAST_MARGIN]
    known = {relative(result.case.seen): result.writes for result in checked}
    generator, met, failures = random.Random(0), set[Any](), list[str]()
    problems = [task.random_problem(generator) for _ in range(0 if wrong else NUM_PROBLEMS)]
    for problem in problems:
        written = decode(model, task.prompt(problem), task, known, met)
        if not task.is_right(problem, written):
            failures.append(f"{problem} is followed by {''.join(written)}")
    unlisted = met - {*known}
    certified = not (wrong or failures or unlisted)
    print(f"{'CERTIFIED' if certified else 'NOT CERTIFIED'}: {task.claim}.")
    print(f"  {len(checked):,} neighbourhoods checked, {len(wrong):,} wrong")
    if isinstance(task, Columns):
        alike = {tuple((t.text, t.place) for t in result.case.seen) for result in checked}
        print(f"  ({len(alike):,} by tokens and relative places, whichever operand a digit is of)")
    starts = [result.case.seen[0].text for result in checked]
    if len({*starts}) > 1:
        print(f"  ({', '.join(f'{starts.count(s):,} after {s}' for s in dict.fromkeys(starts))})")
    print(f"  smallest margin {min(result.margin for result in checked):.12f} logits")
    for result in sorted(wrong, key=lambda result: result.margin)[:1]:
        print(f"  worst of those that are wrong: after {result.case.words},")
        print(f"  the model writes {result.writes} instead of {result.case.right}")
    if not wrong:
        print(f"  {len(problems):,} random {task.problems} written, {len(failures):,} wrong")
        print(f"  {len(met):,} neighbourhoods met in them, {len(unlisted):,} of these not listed")
    for key in sorted(unlisted, key=str)[:1]:
        print(f"  not listed, for example: after {' '.join(text for text, *_ in key[1:])}")
    for failure in failures[:1]:
        print(f"  first wrong answer: {failure}")
    print(f"  weights {file}\n  SHA-256 {digest}")
    print(f"  {on_certificate(directory / 'certificate.json', digest)}")
    return 0 if certified else 1


def on_certificate(file: Path, digest: str) -> str:
    """Which weights the package's own certificate speaks of, in words."""
    try:
        named = json.loads(file.read_text(encoding="utf-8"))["weights_sha256"]
    except (OSError, ValueError, LookupError, TypeError):
        return f"there is no {file.name} that names its weights"
    return f"{file.name} speaks of {'these' if named == digest else 'other'} weights"


# Reading a run ------------------------------------------------------------------------------

# Settings with the values that are covered. Those with None may have any value: they say how training
# went or how large a tensor is, or they mean nothing in a model that is covered.
# fmt: off
RECIPE = dict.fromkeys(("name", "task", "format", "split", "model", "training", "scoring"))
MODEL = {
    "direction": ["causal"], "num_layers": [1], "recurrences": [1], "injection": ["none"],
    "initial_state": ["input"], "activation": ["relu", "gelu", "gelu-tanh", *GATED],
    "norm": ["layer", "rms"], "norm_order": ["pre"], "embedding_norm": [False, True],
    "final_mlp": [False, True], "final_norm": [False, True], "tied_head": [False, True],
    "query_key_norm": [False], "length_scaling": [False], **dict.fromkeys((
        "width", "num_heads", "head_width", "mlp_width", "norm_epsilon", "biases", "positions",
        "init_std", "scaled_residual_init", "embedding_init_std", "dropout", "dropout_on",
    )),
}
SCHEME = {
    "encoding": ["relative"], "added_to": ["input"], "offset": ["none"], "max_offset": [0],
    "subset_of": [0], "num_buckets": [0], "coordinate": None, "window": None, "num_positions": None,
    "base": None, "max_distance": None, "init_std": None, "slope": None, "beyond": None,  # may be absent
}
# fmt: on


def check_settings(where: str, settings: dict[str, Any], covered: dict[str, Any]) -> None:
    """Refuse settings that are unknown or missing, and values that are not covered."""
    for name in sorted({*settings} ^ {*covered}):
        complaint = "an unknown setting" if name in settings else "no setting"
        raise CannotCheckError(f"run.json has {complaint} {where}.{name}, got {sorted(settings)}.")
    for name, values in covered.items():
        if values and (type(settings[name]), settings[name]) not in [(type(v), v) for v in values]:
            choices, value = " or ".join(map(json.dumps, values)), json.dumps(settings[name])
            raise CannotCheckError(f"{where}.{name} must be {choices}, got {value}.")


def find_calculation(recipe: dict[str, Any], covered: list[Columns]) -> Columns:
    """The calculation that a recipe's task asks for and its format writes."""
    reasons, kind = [], recipe["format"]["kind"]
    for calculation in (c for c in covered if c.format["kind"] == [kind]):
        try:
            check_settings("task", {"signed": False} | recipe["task"], calculation.task)
            check_settings("format", recipe["format"], calculation.format)
            return calculation
        except CannotCheckError as error:
            reasons.append(f"for {calculation.problems}, {error}".removesuffix("."))
    missing = f"no calculation here is written in the format {kind}; see docs/checker.md"
    raise CannotCheckError(("; ".join(reasons) or missing) + ".")


def find_windows(schemes: list[dict[str, Any]], covered: list[Windows]) -> Windows:
    """The windows of a model's position schemes, in the order of its bias tables."""
    for number, scheme in enumerate(schemes):
        check_settings(f"model.positions.{number}", {"beyond": None} | scheme, SCHEME)
    windows: Windows = {s["coordinate"]: tuple(s["window"] or ()) for s in schemes}
    if windows not in covered or len(windows) != len(schemes):
        choices = " or ".join(map(str, covered))
        raise CannotCheckError(f"model.positions must have the windows {choices}, got {windows}.")
    return windows


def expected_shapes(settings: dict[str, Any], windows: Windows, vocabulary: int) -> dict[str, Any]:
    """The shape of each tensor of a model, by its name."""
    width, hidden, heads = (settings[name] for name in ("width", "mlp_width", "num_heads"))
    inner = heads * (settings["head_width"] or width // heads)
    attention, shapes = "blocks.0.attention", dict[str, Any]()
    shapes["embedding.weight"] = (vocabulary, width)
    mlps = ["blocks.0.mlp", *["final_mlp"] * settings["final_mlp"]]
    into = ["up", *["gate"] * (settings["activation"] in GATED)]
    for biases, name, rows, columns in (
        ("queries-keys-values", f"{attention}.query", inner, width),
        ("queries-keys-values", f"{attention}.key", inner, width),
        ("queries-keys-values", f"{attention}.value", inner, width),
        ("attention-output", f"{attention}.output", width, inner),
        *(("mlp-hidden", f"{mlp}.{x}", hidden, width) for mlp in mlps for x in into),
        *(("mlp-output", f"{mlp}.down", width, hidden) for mlp in mlps),
        ("head", "head", vocabulary, width),
    ):
        if name != "head" or not settings["tied_head"]:
            shapes[f"{name}.weight"] = (rows, columns)
        shapes |= {f"{name}.bias": (rows,)} if biases in settings["biases"] else {}
    for name in (f"{attention}_norm", "blocks.0.mlp_norm", "embedding_norm", "final_norm"):
        if settings.get(name, True):
            shapes[f"{name}.weight"] = (width,)
            shapes |= {f"{name}.bias": (width,)} if settings["norm"] == "layer" else {}
    for number, (low, high) in enumerate(windows.values()):
        shapes[f"{attention}.relative.{number}.table"] = (high - low + 2, heads)
    return shapes


def read_run(directory: Path, covered: list[Columns]) -> tuple[Columns, Model, Path, str]:
    """What is to be calculated, the model, and its newest file of weights with the SHA-256."""
    try:
        recipe = json.loads((directory / "run.json").read_text(encoding="utf-8"))["recipe"]
        settings = recipe["model"]
        check_settings("recipe", recipe, RECIPE)
        calculation = find_calculation(recipe, covered)
        check_settings("model", settings, MODEL)
        if not 0 <= settings["norm_epsilon"] <= 0.1:
            got = f"got {settings['norm_epsilon']}"
            raise CannotCheckError(f"model.norm_epsilon must be from 0 to 0.1, {got}.")
        windows = find_windows(settings["positions"], calculation.windows)
        expected = expected_shapes(settings, windows, len(calculation.vocabulary))
        files = directory.glob("checkpoints/step-*/model.safetensors")
        file = max(files, key=lambda f: int(f.parent.name[5:]), default=directory / "checkpoints")
        content = file.read_bytes()
        tensors = load(content)
    except CannotCheckError as error:
        raise CannotCheckError(f"{error} Type abacist prove RUN, which covers more.") from None
    except Exception as error:  # whatever else a damaged run makes of these lines
        raise CannotCheckError(f"{directory} cannot be read as a run: {error!r}.") from error
    for name in sorted({*tensors} | {*expected}):
        x, shape = tensors.get(name, np.zeros(0)), expected.get(name)
        if (x.shape, x.dtype.name) != (shape, "float32") or not np.isfinite(x).all():
            got = f"got {x.dtype} of shape {x.shape}"
            raise CannotCheckError(f"{file}: {name} must be finite float32 of {shape}, {got}.")
    weights = {name: tensor.astype(np.float64) for name, tensor in tensors.items()}
    weights.setdefault("head.weight", weights["embedding.weight"])
    model = Model(weights, settings, windows, calculation.vocabulary)
    return calculation, model, file, hashlib.sha256(content).hexdigest()


def main(arguments: list[str], covered: list[Columns]) -> int:
    """Run the program with the arguments of a command line, and return the exit code."""
    try:
        if len(arguments) != 1 or arguments[0].startswith("-"):
            raise CannotCheckError(f"type one argument, a run's directory, got {arguments}.")
        return report(Path(arguments[0]), covered)
    except CannotCheckError as error:
        print(f"Cannot check: {error}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:], [Columns("+"), Columns("-")]))
