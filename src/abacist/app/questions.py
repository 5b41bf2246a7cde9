"""The questions that the page and its JSON interface answer, by name, with plain data.

>>> Questions(gallery).answer("12+34")["answer"]
'46'
>>> Questions(gallery).answer("12+")
{'error': "cannot read '12+': an operand is missing. Type 2 numbers, such as 12+34."}
"""

from collections.abc import Callable
from typing import Any

import torch

from abacist.app import ablation_score, lengths, race, random_problems, vectors
from abacist.app.composed_answers import any_answer
from abacist.app.shown_runs import Gallery
from abacist.errors import AbacistError

Record = dict[str, Any]
"""The JSON of a result, or `{"error": message}`."""


class Questions:
    """Every public method is a question. `run` is the name of a shown run; None is the first one."""

    def __init__(self, gallery: Gallery) -> None:
        self.gallery = gallery

    def all(self) -> dict[str, Callable[..., Record]]:
        """Return every question by its name."""
        return {
            "runs": self.runs,
            "answer": self.answer,
            "draw": self.draw,
            "ablation": self.ablation,
            "lengths": self.lengths,
            "failures": self.failures,
            "race": self.race,
            "vectors": self.vectors,
        }

    def runs(self) -> Record:
        """Return the shown runs: their tasks, sizes and parts."""
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
    ) -> Record:
        """Answer one problem, with the parts in `off` set to 0 (`zero`) or to their `mean`."""
        return _record(
            lambda: any_answer(self.gallery.find(run), problem, off or [], way).to_json()
        )

    def draw(self, digits: int | None = None, run: str | None = None) -> Record:
        """Return a random problem whose operands have `digits` digits."""
        return _record(
            lambda: {
                "problem": random_problems.drawn(self.gallery.find(run), digits, new_generator())
            }
        )

    def ablation(
        self, off: list[str] | None = None, run: str | None = None, way: str = "zero"
    ) -> Record:
        """Return the exact match with some parts switched off."""
        return _record(
            lambda: ablation_score.ablation_score(self.gallery.find(run), off or [], way).to_json()
        )

    def lengths(self, run: str | None = None) -> Record:
        """Return the grid of operand lengths: the scorecard's, or a smaller one that is scored now."""

        def grid() -> Record:
            shown_run = self.gallery.find(run)
            return (lengths.stored_grid(shown_run) or lengths.scored_grid(shown_run)).to_json()

        return _record(grid)

    def failures(
        self,
        first: int,
        second: int,
        run: str | None = None,
        off: list[str] | None = None,
        way: str = "zero",
    ) -> Record:
        """Score test problems of two lengths, and return some with wrong answers."""
        return _record(
            lambda: lengths.failures(
                self.gallery.find(run), first, second, off or [], way
            ).to_json()
        )

    def race(self, problem: str, run: str | None = None) -> Record:
        """Time the model and plain Python on one problem."""
        return _record(lambda: race.race(self.gallery.find(run), problem).to_json())

    def vectors(self, run: str | None = None) -> Record:
        """Return the vectors of the digits during training."""
        return _record(lambda: vectors.vectors(self.gallery.find(run)).to_json())


def new_generator() -> torch.Generator:
    """Return a generator with an unpredictable seed."""
    generator = torch.Generator()
    generator.seed()
    return generator


def _record(question: Callable[[], Record]) -> Record:
    try:
        return question()
    except AbacistError as error:
        return {"error": str(error)}
