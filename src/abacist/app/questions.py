"""What can be asked of the page, and of its JSON interface: questions by name, answered with plain data.

>>> Questions(gallery).answer("12+34")["answer"]
'46'
>>> Questions(gallery).answer("12+")
{'error': "cannot read '12+': an operand is missing. Type 2 numbers, such as 12+34."}
"""

from collections.abc import Callable
from typing import Any

import torch

from abacist.app import answers, lengths, race, random_problems, switched_off, vectors
from abacist.app.shown_runs import Gallery
from abacist.errors import AbacistError

Described = dict[str, Any]
"""What `to_json` gives, or `{"error": one line}`."""


class Questions:
    """Every method is a question; `run` is the name of a run on show, the first one where it is None."""

    def __init__(self, gallery: Gallery) -> None:
        self.gallery = gallery

    def all(self) -> dict[str, Callable[..., Described]]:
        """Every question by its name."""
        return {
            "runs": self.runs,
            "answer": self.answer,
            "draw": self.draw,
            "breakage": self.breakage,
            "lengths": self.lengths,
            "failures": self.failures,
            "race": self.race,
            "vectors": self.vectors,
        }

    def runs(self) -> Described:
        """The runs on show: what they do, and which parts they have."""
        return {
            name: {
                "recipe": shown_run.run.recipe.name,
                "claim": shown_run.claim,
                "example": shown_run.example,
                "parameters": shown_run.trained_model.model.num_parameters,
                "parts": shown_run.parts,
                "trained_digits": random_problems.trained_digits(shown_run),
            }
            for name, shown_run in self.gallery.shown_runs.items()
        }

    def answer(
        self, problem: str, run: str | None = None, off: list[str] | None = None, way: str = "zero"
    ) -> Described:
        """One problem, with some parts set to 0 (`zero`) or to their `mean`."""
        return _described(
            lambda: answers.answer(self.gallery.find(run), problem, off or [], way).to_json()
        )

    def draw(self, digits: int | None = None, run: str | None = None) -> Described:
        """A problem by chance, of so many digits."""
        return _described(
            lambda: {"problem": random_problems.drawn(self.gallery.find(run), digits, by_chance())}
        )

    def breakage(
        self, off: list[str] | None = None, run: str | None = None, way: str = "zero"
    ) -> Described:
        """Exact match with some parts switched off."""
        return _described(
            lambda: switched_off.breakage(self.gallery.find(run), off or [], way).to_json()
        )

    def lengths(self, run: str | None = None) -> Described:
        """The grid of operand lengths: the scorecard's, or a smaller one scored now."""

        def found() -> Described:
            shown_run = self.gallery.find(run)
            return (lengths.stored_grid(shown_run) or lengths.scored_grid(shown_run)).to_json()

        return _described(found)

    def failures(self, first: int, second: int, run: str | None = None) -> Described:
        """Test problems of two lengths, with some that are answered wrongly."""
        return _described(lambda: lengths.failures(self.gallery.find(run), first, second).to_json())

    def race(self, problem: str, run: str | None = None) -> Described:
        """The model against plain Python."""
        return _described(lambda: race.race(self.gallery.find(run), problem).to_json())

    def vectors(self, run: str | None = None) -> Described:
        """The vectors of the digits while training went on."""
        return _described(lambda: vectors.vectors(self.gallery.find(run)).to_json())


def by_chance() -> torch.Generator:
    """A generator that nobody can foresee."""
    generator = torch.Generator()
    generator.seed()
    return generator


def _described(question: Callable[[], Described]) -> Described:
    try:
        return question()
    except AbacistError as error:
        return {"error": str(error)}
