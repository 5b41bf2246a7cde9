"""A trained model with everything that belongs to it.

>>> run = load("runs/add-20261121-153012")
>>> run.solve(["12+34"])[0].answer
'46'
"""

import copy
import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from abacist import files
from abacist.certificates.certificate import MAX_MINUTES, Certificate, prove
from abacist.configuration import override
from abacist.devices import find_device
from abacist.errors import CheckpointError, ConfigurationError
from abacist.formats.format import Format
from abacist.inspection.inspected_problem import InspectedProblem
from abacist.inspection.place_attention import PlaceAttention, place_attention
from abacist.models.transformer import Transformer
from abacist.recipes.recipe import Recipe
from abacist.runs import directory, embeddings, scores
from abacist.runs.directory import RunDirectory, read_recipe
from abacist.scoring.scorecard import DEFAULT_SUITES, Scorecard, score
from abacist.scoring.solving import Solution, solve
from abacist.scoring.suite import Progress
from abacist.scoring.trained_model import TrainedModel
from abacist.tasks.config import ArithmeticConfig
from abacist.tasks.task import Task
from abacist.training import checkpoint


class Run:
    """One training and its outcome."""

    def __init__(
        self,
        directory: RunDirectory,
        recipe: Recipe,
        seed: int,
        model: Transformer,
        step: int | None = None,
    ) -> None:
        """`step` is that of the checkpoint which the weights are from; None for the last."""
        self.directory, self.recipe, self.seed, self.model = directory, recipe, seed, model
        self.step = recipe.training.num_steps if step is None else step
        self.task, self.format = build_problems(recipe)

    @property
    def path(self) -> Path:
        return self.directory.path

    def solve(
        self, problems: str | list[str], on_step: Callable[[int, int], None] | None = None
    ) -> list[Solution]:
        """Let the model write the answers of one or many problems such as `12+34`, token by token."""
        if isinstance(problems, str):
            problems = [problems]
        if not problems:
            return []
        return solve(self.trained_model(), self.task.parse(problems), on_step)

    def score(
        self,
        suites: Sequence[str] = DEFAULT_SUITES,
        on_progress: Progress | None = None,
        **settings: int,
    ) -> Scorecard:
        """Score the model by some suites and keep the scorecard in the run's directory.

        `settings` replaces any of the recipe's for evaluation, as in `num_problems=100`. Sections
        of other suites stay in the directory as long as they speak of the same weights.
        """
        keep = scores.Keeper(self.directory)
        return score(self.trained_model(**settings), suites, on_progress, keep.store)

    def look(
        self, problem: str, other: str | None = None, num_problems: int = 200
    ) -> InspectedProblem:
        """One problem to be looked at with the lenses of `inspection/lens.py`.

        `other` is the problem whose activations are patched in; without one it is made. Averages,
        ablations and probes are over `num_problems` test problems.
        """
        return InspectedProblem(
            self.trained_model(),
            self.task.parse([problem]),
            None if other is None else self.task.parse([other]),
            embeddings.read(self.directory.embeddings),
            num_problems,
        )

    def keep_attention(self) -> PlaceAttention:
        """Mean attention by difference of place, kept in the run's directory for its report."""
        seen = place_attention(self.look(self.task.example))
        files.write_json(self.directory.attention, {"step": self.step, **seen.to_json()})
        return seen

    def trained_model(self, **settings: int) -> TrainedModel:
        """What is scored and looked at; `settings` replaces any of the recipe's for evaluation."""
        return TrainedModel(
            self.model,
            self.task,
            self.format,
            split=self.recipe.split,
            scoring=override(self.recipe.scoring, settings),
            seed=self.seed,
            num_examples=self.recipe.training.num_examples,
        )

    def prove(
        self,
        max_minutes: float = MAX_MINUTES,
        on_progress: Callable[[int, int], None] = lambda done, total: None,
    ) -> Certificate:
        """Check every neighbourhood and keep the certificate in the run's directory.

        Gives up, saying so, as soon as it is known that more than `max_minutes` would be needed.
        `on_progress` is told how many of all cases have been checked.
        """
        certificate = prove(
            replace(self.trained_model(), model=copy.deepcopy(self.model).cpu()),
            max_minutes,
            on_progress,
        )
        certificate = replace(certificate, step=self.step)
        files.write_json(self.directory.certificate, certificate.to_json())
        return certificate


def load(path: str | Path, device: str = "cpu") -> Run:
    """The run in a directory, with the weights of its newest checkpoint. `latest` finds the newest run.

    Raises `RunError` where there is none, and `CheckpointError`, naming the file, when it is damaged.
    """
    found = directory.find(str(path))
    recipe, record = read_recipe(found)
    where = find_device(device)
    model = build_model(recipe)
    checkpoints = checkpoint.all_in(found.checkpoints)
    if not checkpoints:
        raise CheckpointError(
            f"{found.path} has no checkpoint yet. Type abacist train --resume --out {found.path}."
        )
    checkpoint.load_weights(checkpoints[-1], model)
    progress = checkpoint.read_progress(checkpoints[-1])
    if not progress.finished and progress.step < recipe.training.num_steps:
        warnings.warn(
            f"{found.path} is trained for {progress.step} of {recipe.training.num_steps} steps",
            stacklevel=2,
        )
    return Run(found, recipe, record["seed"], model.to(where).eval(), progress.step)


def build_problems(recipe: Recipe) -> tuple[Task, Format]:
    """The task and the format that a recipe configures, which must go together."""
    return recipe.task.build(), recipe.format.build(recipe.task)


def stage_task(recipe: Recipe, number: int) -> Task:
    """The task of one stage of the curriculum: the recipe's own with some settings changed."""
    stage = recipe.training.curriculum[number]
    whole = recipe.task
    try:
        config = override(whole, stage.changes)
    except ConfigurationError as error:
        raise ConfigurationError(f"training.curriculum.{number}.task: {error}") from error
    if isinstance(whole, ArithmeticConfig) and isinstance(config, ArithmeticConfig):
        inside = (
            set(config.operations) <= set(whole.operations)
            and config.longest_operand <= whole.longest_operand
            and config.max_operands <= whole.max_operands
        )
        if not inside:
            raise ConfigurationError(
                f"training.curriculum.{number}.task must ask what the task asks, of at most "
                f"{whole.longest_operand} digits and {whole.max_operands} operands, got "
                f"{','.join(stage.task)}. "
                f"Try --training.curriculum.{number}.task max_digits={whole.longest_operand}."
            )
    return config.build()


def build_model(recipe: Recipe) -> Transformer:
    """An untrained model; its weights depend on torch's global seed."""
    parallel, causal = recipe.format.kind == "parallel", recipe.model.direction == "causal"
    if parallel and causal:
        raise ConfigurationError(
            "the parallel format is for encoders and this model is a causal decoder. "
            "Try --model.direction both, or --format reversed."
        )
    if not parallel and not causal:
        raise ConfigurationError(
            "an encoder writes all answer tokens at once and needs a format with parallel "
            "targets. Try --format parallel, or --model.direction causal."
        )
    for number, scheme in enumerate(recipe.model.positions):
        if scheme.coordinate not in recipe.format.coordinates:
            raise ConfigurationError(
                f"the {recipe.format.kind} format gives tokens no {scheme.coordinate}. "
                f"Try --model.positions.{number}.coordinate {recipe.format.coordinates[-1]}."
            )
    if recipe.training.progressive_loss != "none" and recipe.model.recurrences == 1:
        raise ConfigurationError(
            "a progressive loss is for looped models and this one runs once. "
            "Try --training.progressive_loss none, or --model.recurrences 8."
        )
    if recipe.training.loss_on == "all" and not causal:
        raise ConfigurationError(
            "an encoder is asked for the answer only. Try --training.loss_on answer."
        )
    _, format = build_problems(recipe)
    return Transformer(recipe.model, len(format.vocabulary))
