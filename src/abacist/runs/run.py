"""A run in Python: a trained model with its recipe and its directory.

>>> run = load("runs/add-20261121-153012")
>>> run.solve(["12+34"])[0].answer
'46'
>>> run.tokens("12+34")["token"][-4:]
['=', '6', '4', '<end>']
>>> run.logits("12+34").shape                   # logits[t] are those of token t + 1
torch.Size([9, 14])
>>> run.cache("12+34")["pattern", 0].shape
torch.Size([1, 4, 9, 9])
"""

import copy
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from torch import Tensor

from abacist import extensions, files
from abacist.certificates.certificate import MAX_MINUTES, prove
from abacist.certificates.enclosures import PRECISIONS
from abacist.certificates.record import Certificate
from abacist.configuration import override
from abacist.data.examples import Examples
from abacist.devices import find_device
from abacist.errors import CheckpointError, ConfigurationError, ProblemError
from abacist.formats.format import Format
from abacist.inspection.cache import ActivationCache, Hook, run_with_cache
from abacist.inspection.inspected_problem import InspectedProblem
from abacist.inspection.place_attention import PlaceAttention, place_attention
from abacist.inspection.token_table import TokenTable, token_table
from abacist.models.transformer import Transformer
from abacist.notebook_html import html_table
from abacist.recipes.recipe import Recipe
from abacist.runs import directory, embeddings, identity, scores
from abacist.runs.directory import RunDirectory, read_recipe, read_run_json
from abacist.runs.identity import Identity
from abacist.scoring.composed import solve_composed
from abacist.scoring.records import Scorecard, Solution
from abacist.scoring.scorecard import DEFAULT_SUITES, check_settings, score
from abacist.scoring.suite import Progress
from abacist.scoring.trained_model import TrainedModel
from abacist.tasks.config import ArithmeticConfig
from abacist.tasks.task import Task
from abacist.training.checkpoint import read as read_checkpoint
from abacist.training.checkpoint import weights_sha256 as sha256_of_weights
from abacist.training.config import TrainingConfig


class Run:
    """One training with its recipe, its weights and its directory."""

    def __init__(
        self,
        directory: RunDirectory,
        recipe: Recipe,
        seed: int,
        model: Transformer,
        step: int | None = None,
        weights_file_sha256: str | None = None,
    ) -> None:
        """Make a run of its parts; `load` reads one.

        Args:
            step: the number of optimiser steps that made the weights; None stands for all steps.
            weights_file_sha256: SHA-256 of the file that holds the weights of `model`; None if
                `checkpoint.save` wrote it or will write it.
        """
        self.directory, self.recipe, self.seed, self.model = directory, recipe, seed, model
        self.step = recipe.training.num_steps if step is None else step
        self.task, self.format = build_problems(recipe)
        self._configuration_sha256 = identity.configuration_sha256(
            read_run_json(directory)["recipe"]
        )
        self._file_sha256: dict[str, str] = {}
        if weights_file_sha256 is not None:
            self._file_sha256[sha256_of_weights(model)] = weights_file_sha256

    @property
    def identity(self) -> Identity:
        """The identity of the model with the weights that it has now, even if they were changed."""
        weights_sha256 = sha256_of_weights(self.model)
        return Identity(
            self._file_sha256.get(weights_sha256, weights_sha256), self._configuration_sha256
        )

    @property
    def path(self) -> Path:
        return self.directory.path

    def __repr__(self) -> str:
        return f"Run({str(self.path)!r}, recipe {self.recipe.name!r}, seed {self.seed}, step {self.step:,})"

    def _repr_html_(self) -> str:
        rows = [
            ("recipe", self.recipe.name),
            ("seed", self.seed),
            ("step", f"{self.step:,} of {self.recipe.training.end_after(self.step):,}"),
            ("parameters", f"{self.model.num_parameters:,}"),
            ("example", self.task.example),
        ]
        return html_table(f"Run {self.path}", (), rows)

    def solve(
        self, problems: str | list[str], on_step: Callable[[int, int], None] | None = None
    ) -> list[Solution]:
        """Let the model write the answers of one or many problems such as `12+34`, token by token.

        Where spaces are tokens of the notation, typed spaces are written as typed; see `scoring/typed.py`.
        `gcd(12,18)` and `pow(3,100,7)` are composed of several answers; see `scoring/composed.py`.

        Raises `ProblemError` for a problem that cannot be read or that the task does not include.
        """
        if isinstance(problems, str):
            problems = [problems]
        if not problems:
            return []
        for problem in problems:
            if not isinstance(problem, str):
                raise ProblemError(f"problems are text, got {problem!r}. Type '12+34', in quotes.")
        return solve_composed(self.trained_model(), problems, on_step)

    def score(
        self,
        suites: Sequence[str] = DEFAULT_SUITES,
        on_progress: Progress | None = None,
        **settings: Any,
    ) -> Scorecard:
        """Score the model by some suites and store the scorecard in the run's directory.

        `settings` replaces settings of the recipe's `scoring`, as in `num_problems=100`. Sections of
        other suites stay in the stored scorecard if they score the same model.

        Raises `ConfigurationError` where a suite is unknown or does not apply, or where no suite
        follows a setting.
        """
        check_settings(settings, suites)
        file = scores.ScorecardFile(self.directory, self.step, self.identity)
        return score(self.trained_model(**settings), suites, on_progress, file.store)

    def look(
        self, problem: str, other: str | None = None, num_problems: int = 200
    ) -> InspectedProblem:
        """Return one problem to look at with the lenses of `inspection/lens.py`.

        Args:
            problem: the problem, as in `12+34`.
            other: the problem whose activations are patched in; None makes a suitable one.
            num_problems: number of test problems for averages, ablations and probes.
        """
        return InspectedProblem(
            self.trained_model(),
            self.task.parse([problem]),
            None if other is None else self.task.parse([other]),
            embeddings.read(self.directory.embeddings),
            num_problems,
        )

    def tokens(self, problem: str) -> TokenTable:
        """Return the line of a problem with its right answer: every token with its annotations."""
        return token_table(self.trained_model(), self.task.parse([problem]))

    def generate(self, problem: str) -> str:
        """Return what the model writes after a problem, token by token, such as `64<end>` for `12+34`."""
        return self.solve(problem)[0].text

    def logits(self, problem: str, hooks: Mapping[str, Hook] | None = None) -> Tensor:
        """Return the logits (T, V) at every token that the model reads in the line with the right answer.

        Row t belongs to token t + 1 of `tokens(problem)`; for an encoder, to token t.

        Args:
            problem: the problem, as in `12+34`.
            hooks: functions that replace activations, by activation name; see `inspection/cache.py`.

        Raises `ProblemError` for a line of more than 512 tokens.
        """
        return self._logits_and_cache(problem, hooks, keep="")[0]

    def cache(self, problem: str, hooks: Mapping[str, Hook] | None = None) -> ActivationCache:
        """Return all activations on the line of a problem by name; arguments as those of `logits`."""
        return self._logits_and_cache(problem, hooks)[1]

    def attention(self, problem: str) -> Tensor:
        """Return the attention patterns on the line of a problem, (depth, H, T, T), query before key.

        The depth counts recurrences × layers.
        """
        _, cache = self._logits_and_cache(problem, None, keep="hook_pattern")
        return cache.stack("pattern")[:, 0]

    def _logits_and_cache(
        self, problem: str, hooks: Mapping[str, Hook] | None, keep: str | None = None
    ) -> tuple[Tensor, ActivationCache]:
        """Run the model on one line. `keep` is the end of the names to keep; None keeps all."""
        lines = self.look(problem).lines
        logits, cache = run_with_cache(
            self.model,
            lines.tokens.ids,
            lines.coordinates,
            hooks,
            keep=lambda name: keep is None or (bool(keep) and name.endswith(keep)),
        )
        return logits[0], cache

    def save_attention(self) -> PlaceAttention:
        """Measure mean attention by difference of place and store it for the report."""
        attention = place_attention(self.look(self.task.example))
        files.make_directory(self.directory.results_path)
        files.write_json(
            self.directory.attention,
            {"step": self.step, **self.identity.to_json(), **attention.to_json()},
        )
        return attention

    def trained_model(self, **settings: Any) -> TrainedModel:
        """Return the model with its task and format, for scoring, proving and looking inside.

        `settings` replaces settings of the recipe's `scoring`.
        """
        return TrainedModel(
            self.model,
            self.task,
            self.format,
            split=self.recipe.split,
            scoring=override(self.recipe.scoring, settings),
            seed=self.seed,
            examples=examples_of(self.recipe.training),
        )

    def prove(
        self,
        max_minutes: float = MAX_MINUTES,
        on_progress: Callable[[int, int], None] = lambda done, total: None,
        precision: str = "float32",
        on_mistake: Callable[[str], None] | None = None,
    ) -> Certificate:
        """Check every neighbourhood and store the certificate in the run's directory.

        Gives up, and says so in the certificate, if the check would take more than `max_minutes`.
        A refusal in tf32 or bfloat16 does not replace a certificate of the same weights.
        Where it cannot be written, the warning `NotSaved` says so.
        `on_progress` receives the number of cases checked and the number of all cases. The claim
        holds for implementations in `precision`: float32, tf32 or bfloat16. `on_mistake` receives a
        problem for every wrong neighbourhood, to train on or to look at.
        """
        if precision not in PRECISIONS:
            raise ConfigurationError(
                f"precision must be one of {', '.join(PRECISIONS)}, got {precision!r}."
            )
        certificate = prove(
            replace(self.trained_model(), model=copy.deepcopy(self.model).cpu()),
            max_minutes,
            on_progress,
            PRECISIONS[precision],
            on_mistake,
        )
        source = identity.package()
        certificate = replace(
            certificate,
            step=self.step,
            weights_sha256=self.identity.weights_sha256,
            configuration_sha256=self.identity.configuration_sha256,
            abacist_version=source["abacist_version"],
            source_sha256=source["source_sha256"],
        )
        if precision != "float32" and not certificate.certified and self._is_certified():
            warnings.warn(
                f"{self.directory.certificate} keeps the certificate that these weights have; the "
                f"refusal in {precision} is not stored.",
                stacklevel=2,
            )
            return certificate
        with files.not_saved_as_warning("The certificate"):
            files.make_directory(self.directory.results_path)
            files.write_json(self.directory.certificate, certificate.to_json())
        return certificate

    def _is_certified(self) -> bool:
        """Whether the stored certificate is one of these weights and this configuration."""
        try:
            stored = files.parse_json(self.directory.certificate.read_bytes())
            return stored["certified"] is True and self.identity.objection(stored) is None
        except (OSError, ValueError, KeyError, TypeError):
            return False


def load(
    path: str | Path,
    device: str = "cpu",
    *,
    checkpoint: str | int = "last",
    accept_changed_extension: bool = True,
) -> Run:
    """Load a run with the weights of a checkpoint. `latest` stands for the newest run.

    `hf://USER/NAME` stands for a run on the Hugging Face Hub, which is downloaded into its cache.

    `checkpoint` is `last`, `best` (the one that was best on validation) or a step. An extension that
    has changed since the training is a warning, or an error without `accept_changed_extension`.

    Raises:
        RunError: there is no run in `path`, or an extension that it needs is not loaded.
        CheckpointError: there is no checkpoint, or it is damaged; the message names the file.
    """
    extensions.load_installed()
    run_directory = directory.find(str(path), checkpoint)
    recipe, record = read_recipe(run_directory)
    if accept_changed_extension:
        extensions.warn_of_changes(record, run_directory.path)
    else:
        extensions.refuse_changes(record, run_directory.path)
    torch_device = find_device(device)
    model = build_model(recipe)
    if run_directory.checkpoint is None:
        raise CheckpointError(
            f"{run_directory.path} has no checkpoint yet. "
            f"Type {extensions.command('train', '--resume', '--out', str(run_directory.path))}."
        )
    stored = read_checkpoint(run_directory.checkpoint)
    stored.load_weights(model)
    progress = stored.progress
    is_partial = not progress.finished and progress.step < recipe.training.num_steps
    if is_partial and run_directory.chosen is None:
        warnings.warn(
            f"{run_directory.path} is trained for {progress.step} of "
            f"{recipe.training.num_steps} steps",
            stacklevel=2,
        )
    return Run(
        run_directory,
        recipe,
        record["seed"],
        model.to(torch_device).eval(),
        progress.step,
        stored.weights_sha256,
    )


def build_problems(recipe: Recipe) -> tuple[Task, Format]:
    """Build the task and the format of a recipe.

    Raises `ConfigurationError` if the format cannot write the problems of the task.
    """
    return recipe.task.build(), recipe.format.build(recipe.task)


def examples_of(training: TrainingConfig) -> Examples | None:
    """Return the fixed problems that a recipe trains on; None if it draws fresh ones forever."""
    if training.examples:
        return Examples(len(training.examples), listed=training.examples)
    if training.num_examples is None:
        return None
    return Examples(training.num_examples, training.balanced_examples)


def stage_task(recipe: Recipe, number: int) -> Task:
    """Build the task of one stage of the curriculum: the recipe's task with some settings changed.

    Raises `ConfigurationError` if the stage asks for problems that the task does not include.
    """
    stage = recipe.training.curriculum[number]
    task = recipe.task
    try:
        config = override(task, stage.changes)
    except ConfigurationError as error:
        raise ConfigurationError(f"training.curriculum.{number}.task: {error}") from error
    if isinstance(task, ArithmeticConfig) and isinstance(config, ArithmeticConfig):
        is_included = (
            set(config.operations) <= set(task.operations)
            and config.longest_operand <= task.longest_operand
            and config.max_operands <= task.max_operands
        )
        if not is_included:
            raise ConfigurationError(
                f"training.curriculum.{number}.task must only ask for problems of the task, with at most "
                f"{task.longest_operand} digits and {task.max_operands} operands, got "
                f"{','.join(stage.task)}. "
                f"Try --training.curriculum.{number}.task max_digits={task.longest_operand}."
            )
    return config.build()


def build_model(recipe: Recipe) -> Transformer:
    """Build an untrained model; its weights depend on torch's global seed.

    Raises `ConfigurationError` if the model does not suit the format or the training.
    """
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
    rate = recipe.training.relative_bias_rate
    if rate != 1 and all(scheme.encoding != "relative" for scheme in recipe.model.positions):
        raise ConfigurationError(
            f"training.relative_bias_rate {rate:g} is for relative position biases, and this model has "
            "none. Try --training.relative_bias_rate 1, or --model.positions place-relative."
        )
    if recipe.training.loss_on == "all" and not causal:
        raise ConfigurationError(
            "an encoder predicts the tokens of the answer only. Try --training.loss_on answer."
        )
    _, format = build_problems(recipe)
    return Transformer(recipe.model, len(format.vocabulary))
