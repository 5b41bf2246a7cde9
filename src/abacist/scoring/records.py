"""The records that scoring writes; they are read and written without torch.

    scorecard.json    a `Section` for each suite that scored the run
    failures.jsonl    a `Failure` a line, each with the name of its suite

>>> from_json(Section, json.loads(path.read_text())["sections"]["lengths"])
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from abacist.configuration import from_json, to_json
from abacist.intervals import Proportion
from abacist.notebook_html import html_table


@dataclass(frozen=True)
class Measures:
    """How well a sample of problems is answered, as one teacher-forced pass measures it."""

    loss: float
    """Mean cross entropy of the targets, in nats per token."""
    token_accuracy: Proportion
    """Share of the targets that are predicted correctly."""
    exact_match: Proportion
    """Share of the problems of which every target is right, scratch work included."""
    exact_answer: Proportion
    """Share of the problems whose answer is right, whatever their scratch work."""

    @staticmethod
    def of_counts(
        loss: float, tokens: tuple[int, int], lines: tuple[int, int], answers: tuple[int, int]
    ) -> "Measures":
        """Return measures from the loss and, for each share, its successes and its number."""
        return Measures(loss, Proportion(*tokens), Proportion(*lines), Proportion(*answers))


@dataclass(frozen=True)
class Solution:
    """A problem, the model's answer, and the right answer."""

    problem: str
    answer: str | None
    """None where the model wrote something that cannot be read as an answer."""
    expected: str
    margin: float = math.nan
    """Smallest margin between a written token and the runner-up, in logits. Not stored; NaN when read."""
    text: str = ""
    """What the model wrote, token by token, up to the end token or the last step."""
    expected_text: str = ""
    """What it should have written, scratch work and end token included."""
    perplexity: float | None = None
    """Perplexity of `expected_text`, per token; None where it is beyond 1e300 or was not measured."""

    @property
    def correct(self) -> bool:
        """Whether the answer is the right one."""
        return self.answer == self.expected

    @property
    def answer_text(self) -> str:
        """The answer, or a note that there is none."""
        return "(no answer)" if self.answer is None else self.answer

    def __str__(self) -> str:
        if self.correct:
            return f"{self.problem}={self.answer_text} ✓"
        wrote = f", wrote {self.text}" if self.answer is None and self.text else ""
        return f"{self.problem}={self.answer_text} ✗ expected {self.expected}{wrote}"

    def to_json(self) -> dict[str, object]:
        """Return `{"problem": "12+34", "answer": "46", "expected": "46", "correct": true, "text": "64<end>", …}`."""
        return {
            "problem": self.problem,
            "answer": self.answer,
            "expected": self.expected,
            "correct": self.correct,
            "text": self.text,
            "expected_text": self.expected_text,
            "perplexity": self.perplexity,
        }

    @staticmethod
    def from_json(data: Mapping[str, Any]) -> "Solution":
        """Return the solution that `to_json` turned into `data`, without its margin."""
        answer = data["answer"]
        return Solution(
            str(data["problem"]),
            None if answer is None else str(answer),
            str(data["expected"]),
            text=str(data.get("text", "")),
            expected_text=str(data.get("expected_text", "")),
            perplexity=from_json(float | None, data.get("perplexity"), "perplexity"),
        )


@dataclass(frozen=True)
class Failure:
    """One problem with a wrong answer."""

    row: str
    """Row of the section in which it occurred, such as `20 digits`; empty if it belongs to no single row."""
    prompt: str
    """The prompt, token by token."""
    solution: Solution
    first_wrong_place: int | None
    """Place of the first wrong digit, 1 for units; None if that token has no place."""
    carry_chain: int | None
    """Longest run of columns that receive a carry; None if the task has no carries."""
    margin: float
    """Smallest margin over the tokens of the right answer: its logit minus the best other one."""

    def to_json(self) -> dict[str, object]:
        """Return the keys of the solution, and where and by how much it went wrong."""
        return self.solution.to_json() | {
            name: value for name, value in vars(self).items() if name != "solution"
        }

    @staticmethod
    def from_json(data: Mapping[str, Any]) -> "Failure":
        """Return the failure that `to_json` turned into `data`; other keys, such as `suite`, are ignored."""
        return Failure(
            str(data["row"]),
            str(data["prompt"]),
            Solution.from_json(data),
            from_json(int | None, data["first_wrong_place"], "first_wrong_place"),
            from_json(int | None, data["carry_chain"], "carry_chain"),
            from_json(float, data["margin"], "margin"),
        )


@dataclass(frozen=True)
class Feature:
    """A property that is more frequent among failures than among all problems."""

    name: str
    """The property, such as `longest carry chain`."""
    value: str
    among_failures: Proportion
    expected: float
    """Fraction of all problems with the property; for a place, the fraction if every token failed equally often."""


@dataclass(frozen=True)
class Row:
    """One line of a section."""

    name: str
    kind: str
    """Group within the section, such as `trained`, `beyond` or `probe`."""
    digits: int
    """Length of the longest operand; 0 if the row is about something else."""
    proportion: Proportion | None
    """Problems with a right answer, or what `measure` says; None if `note` says why there is none."""
    smallest_margin: float | None = None
    """Smallest margin over all answer tokens of all problems of the row, in logits."""
    note: str = ""
    measure: str = "exact match"
    """Quantity that is counted, such as `exact match` or `token accuracy`."""

    @property
    def label(self) -> str:
        """The name, with the measure if it is not exact match."""
        return self.name if self.measure == "exact match" else f"{self.name} ({self.measure})"


@dataclass(frozen=True)
class Section:
    """The results of one suite."""

    title: str
    rows: list[Row]
    failures: list[Failure] = field(default_factory=list)
    """Some of the problems with a wrong answer. They are stored in `failures.jsonl`."""
    features: list[Feature] = field(default_factory=list)
    """What the problems with a wrong answer have in common."""
    errors: int = 0
    """Number of problems with a wrong answer; a problem that is in several rows counts once."""
    details: dict[str, Any] = field(default_factory=dict)
    """Further results of the suite, as JSON values."""
    complete: bool = True
    """False if the suite was interrupted and this is what had been scored by then."""

    @property
    def trained_digits(self) -> int:
        """Length of the longest training operand that was scored; 1 if there is no such row."""
        return max((row.digits for row in self.rows if row.kind == "trained"), default=1)

    @property
    def num_problems(self) -> int:
        """Number of problems, summed over the rows of exact match."""
        return sum(
            row.proportion.n
            for row in self.rows
            if row.proportion is not None and row.measure == "exact match"
        )

    def to_json(self) -> dict[str, object]:
        """Return all fields but the failures."""
        return {name: to_json(value) for name, value in vars(self).items() if name != "failures"}


@dataclass(frozen=True, repr=False)
class Scorecard:
    """The results of all suites that scored a run."""

    sections: dict[str, Section]
    """Sections by the name of the suite."""
    exempt_digits: int = 0
    """Problems whose longest operand has at most this many digits belong to all splits."""

    @property
    def rows(self) -> list[Row]:
        """The rows of all sections."""
        return [row for section in self.sections.values() for row in section.rows]

    @property
    def failures(self) -> list[Failure]:
        """The stored failures of all sections."""
        return [failure for section in self.sections.values() for failure in section.failures]

    @property
    def errors(self) -> int:
        """Number of wrong answers in all sections."""
        return sum(section.errors for section in self.sections.values())

    @property
    def complete(self) -> bool:
        """False if scoring was interrupted."""
        return all(section.complete for section in self.sections.values())

    def __repr__(self) -> str:
        state = "" if self.complete else ", interrupted"
        suites = ", ".join(self.sections) or "nothing scored"
        return f"Scorecard({suites}: {len(self.rows)} rows, {self.errors:,} wrong answers{state})"

    def _repr_html_(self) -> str:
        rows = ((row.label, row.proportion or row.note) for row in self.rows)
        return html_table(repr(self), ("problems", "right"), rows)

    def to_json(self) -> dict[str, Any]:
        """Return all sections, the number of errors, and the exemption."""
        return {
            "sections": {name: section.to_json() for name, section in self.sections.items()},
            "errors": self.errors,
            "exempt_digits": self.exempt_digits,
        }

    def failures_to_json(self) -> list[dict[str, object]]:
        """Return every stored failure, with the name of its suite."""
        return [
            {"suite": name} | failure.to_json()
            for name, section in self.sections.items()
            for failure in section.failures
        ]
