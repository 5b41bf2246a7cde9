"""Activation patching: which activations transport a carry from one digit to the next.

Two problems differ in one digit and therefore in one carry. While the model reads the first problem,
one activation is replaced by its value for the second (Vig et al., arXiv 2004.12265; Meng et al.,
arXiv 2202.05262 §2). The effect on the digit that receives the carry is 0 if the prediction does not
change, and 1 if the model answers as if it had read the second problem:

    effect = (patched - own) / (other - own)

Each term is the logit of the first problem's digit minus that of the second problem's.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from abacist.errors import ProblemError
from abacist.inspection.ablation import components
from abacist.inspection.cache import ActivationCache, Hook, name_of, run_with_cache
from abacist.inspection.carries import carries, has_carries
from abacist.inspection.finding import Array, Finding, array
from abacist.inspection.inspected_lines import InspectedLines, write_lines
from abacist.inspection.inspected_problem import InspectedProblem
from abacist.models.transformer import Transformer
from abacist.tasks.problems import Problems, Shapes


@dataclass(frozen=True)
class Patching(Finding):
    """Effects on one token when activations of the partner replace those of the problem."""

    problem: str
    partner: str
    tokens: list[str]
    partner_tokens: list[str]
    predicting: int
    """Index of the token whose prediction is measured: that of the highest place at which the answers differ."""
    place: int
    """The predicted place, 1 for units; negative if the token has none."""
    right: str
    partner_right: str
    components: list[str]
    effect: Array
    """(component, token): effect of replacing the activation of one token."""
    effect_everywhere: Array
    """(component,): effect of replacing the activations of all tokens."""


def obstacle(inspected: InspectedProblem) -> str | None:
    """Return why no partner can be generated; None if one can."""
    if inspected.partner is None and not has_carries(inspected.trained_model.task):
        return (
            "this task has no carry to change. Type a second problem of equal lengths after --with."
        )
    return None


def patching(inspected: InspectedProblem) -> Patching:
    """Patch every head, MLP and residual from the partner, one token at a time and all together."""
    trained_model, model = inspected.trained_model, inspected.trained_model.model
    partner = inspected.partner or make_partner(inspected)
    own, other = inspected.lines, write_lines(trained_model, partner)
    expressions = [inspected.text, *trained_model.task.expressions(partner)]
    column = _highest_difference(own, other, *expressions)
    right, wrong = own.labels[0, column], other.labels[0, column]

    def run(lines: InspectedLines) -> tuple[Tensor, ActivationCache]:
        return run_with_cache(model, lines.tokens.ids, lines.coordinates)

    own_logits, _ = run(own)
    other_logits, cache = run(other)

    def leads(logits_BTV: Tensor) -> Tensor:
        logits_BV = logits_BTV[:, column].cpu().double()
        return logits_BV[:, right] - logits_BV[:, wrong]

    start, end = leads(own_logits), leads(other_logits)
    if bool(start == end):
        raise ProblemError(
            f"the answers of {expressions[0]} and {expressions[1]} differ in a digit for which this model "
            "does not see any difference. Try --lens place-attention."
        )
    # One row for each token that is patched alone, and a last row in which all are patched.
    num_tokens = own.tokens.ids.shape[1]
    patched = torch.eye(num_tokens, dtype=torch.bool, device=model.device)
    patched = torch.cat([patched, torch.ones_like(patched[:1])])
    effects = []
    components_and_residuals = patchable(model)
    for _, name, head in components_and_residuals:
        logits, _ = run_with_cache(
            model,
            own.tokens.ids.expand(num_tokens + 1, -1),
            own.coordinates,
            {name: _patch(cache[name], patched, head)},
            keep=lambda name: False,
        )
        # Adding 0 converts -0 to 0.
        effects.append((leads(logits) - start) / (end - start) + 0.0)
    effect = torch.stack(effects)
    names = trained_model.format.vocabulary.tokens
    return Patching(
        problem=expressions[0],
        partner=expressions[1],
        tokens=inspected.tokens,
        partner_tokens=[names[token] for token in other.tokens.ids[0].tolist()],
        predicting=column,
        place=int(own.predicted_place[0, column]),
        right=names[int(right)],
        partner_right=names[int(wrong)],
        components=[label for label, _, _ in components_and_residuals],
        effect=array(effect[:, :-1], "component", "token"),
        effect_everywhere=array(effect[:, -1], "component"),
    )


def patchable(model: Transformer) -> list[tuple[str, str, int | None]]:
    """Return what is patched: the residual before each layer, its heads and MLP, and the last residual.

    Each has a label, the name of its activation and its head number, as in `components`.
    """
    targets: list[tuple[str, str, int | None]] = []
    parts = components(model)
    per_layer = len(parts) // model.depth
    for depth in range(model.depth):
        name = "embedding" if depth == 0 else f"residual {depth}"
        targets.append((name, name_of("resid_pre", depth), None))
        targets += parts[depth * per_layer : (depth + 1) * per_layer]
    return [*targets, ("last residual", name_of("resid_post", model.depth - 1), None)]


def make_partner(inspected: InspectedProblem) -> Problems:
    """Change one digit of the problem so that exactly one carry changes.

    The lowest possible column is changed, without changing the length of the line. Raises
    `ProblemError` if no such change exists.
    """
    trained_model, problem = inspected.trained_model, inspected.problem
    own = carries(trained_model, problem)
    candidates = _one_digit_changed(problem)
    changed = (carries(trained_model, candidates) != own).sum(dim=1)
    for row in (changed == 1).nonzero().squeeze(1).tolist():
        partner = candidates[row : row + 1]
        if _have_equal_layout(inspected.lines, write_lines(trained_model, partner)):
            return partner
    raise ProblemError(
        f"no single digit of {inspected.text} can be changed so that one carry changes and the "
        "answer keeps its length. Type a second problem of equal lengths after --with."
    )


def _one_digit_changed(problem: Problems) -> Problems:
    """Return every problem with one digit changed and no leading zero, lowest columns first."""
    changed = []
    _, operands, width = problem.digits_BNW.shape
    lengths = problem.lengths_BN[0].tolist()
    for column in range(width):
        for operand in range(operands):
            is_leading = column == lengths[operand] - 1 and column > 0
            if column >= lengths[operand]:
                continue
            for digit in range(int(is_leading), 10):
                if digit != int(problem.digits_BNW[0, operand, column]):
                    digits = problem.digits_BNW[0].clone()
                    digits[operand, column] = digit
                    changed.append(digits)
    rows = torch.zeros(len(changed), dtype=torch.int64)
    shapes = Shapes(problem.lengths_BN[rows], problem.operation_B[rows])
    signs = None if problem.negative_BN is None else problem.negative_BN[rows]
    return Problems(torch.stack(changed), shapes, signs)


def _highest_difference(
    own: InspectedLines, other: InspectedLines, problem: str, partner: str
) -> int:
    """Return the index of the token that predicts the highest place at which the right answers differ.

    Raises `ProblemError` if the lines have different layouts or the same answer.
    """
    if not _have_equal_layout(own, other):
        raise ProblemError(
            f"{problem} and {partner} have different layouts. Type a problem after --with whose "
            "operands and answer have the same lengths."
        )
    differs = own.answers & (own.labels != other.labels)
    if not bool(differs.any()):
        raise ProblemError(
            f"{problem} and {partner} have the same answer. Type another problem after --with."
        )
    return int(torch.where(differs, own.predicted_place, -9)[0].argmax())


def _have_equal_layout(own: InspectedLines, other: InspectedLines) -> bool:
    """Whether two lines have the same field and place at every token."""
    return own.labels.shape == other.labels.shape and bool(
        (own.tokens.field == other.tokens.field).all()
        and (own.tokens.place == other.tokens.place).all()
    )


def _patch(partner_activation: Tensor, patched_BT: Tensor, head: int | None) -> Hook:
    """Return a hook that replaces the activation where `patched_BT` is true, of one head or of all."""

    def hook(activation: Tensor) -> Tensor:
        mask = patched_BT.view(*patched_BT.shape, *[1] * (activation.dim() - 2))
        if head is None:
            return torch.where(mask, partner_activation, activation)
        heads = torch.arange(activation.shape[2], device=activation.device) == head
        return torch.where(mask & heads.unsqueeze(-1), partner_activation, activation)

    return hook
