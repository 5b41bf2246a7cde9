"""Activation patching: which activations carry the carry from one digit to the next.

Two problems differ in one digit, and with it in one carry. While the model reads the first,
one activation is replaced by that of the second (Vig et al., arXiv 2004.12265; Meng et al.,
arXiv 2202.05262 §2). The effect on the digit that receives the carry is 0 where nothing happens
and 1 where the model now answers as if it had read the second problem:

    effect = (patched - own) / (other - own),   each the own digit's logit minus the other one's
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from abacist.errors import ProblemError
from abacist.inspection.ablation import components
from abacist.inspection.cache import ActivationCache, Hook, name_of, run_with_cache
from abacist.inspection.carries import carries, has_carries
from abacist.inspection.finding import Array, Finding, array
from abacist.inspection.inspected_lines import Lines, write_lines
from abacist.inspection.inspected_problem import InspectedProblem
from abacist.models.transformer import Transformer
from abacist.tasks.problems import Problems, Shapes


@dataclass(frozen=True)
class Patching(Finding):
    """Effects on one token; the activations of the partner replace those of the problem."""

    problem: str
    partner: str
    tokens: list[str]
    partner_tokens: list[str]
    predicting: int
    """Number of the token whose prediction is looked at: the highest place at which the answers differ."""
    place: int
    """The place it predicts."""
    right: str
    partner_right: str
    components: list[str]
    effect: Array
    """(component, token): with the activation of that one token replaced."""
    effect_everywhere: Array
    """(component,): with the activations of all tokens replaced."""


def obstacle(inspected: InspectedProblem) -> str | None:
    """Why no partner can be made."""
    if inspected.partner is None and not has_carries(inspected.trained_model.task):
        return (
            "this task has no carry to change. Type another problem of equal lengths behind --with."
        )
    return None


def patching(inspected: InspectedProblem) -> Patching:
    """Patch every head, MLP and residual from the partner, token by token and all at once."""
    trained_model, model = inspected.trained_model, inspected.trained_model.model
    partner = inspected.partner or make_partner(inspected)
    own, other = inspected.lines, write_lines(trained_model, partner)
    expressions = [inspected.text, *trained_model.task.expressions(partner)]
    column = _where_answers_differ(own, other, *expressions)
    right, wrong = own.labels[0, column], other.labels[0, column]

    def run(lines: Lines) -> tuple[Tensor, ActivationCache]:
        return run_with_cache(model, lines.tokens.ids, lines.coordinates)

    own_logits, _ = run(own)
    other_logits, cache = run(other)

    def leads(logits_BTV: Tensor) -> Tensor:
        at = logits_BTV[:, column].cpu().double()
        return at[:, right] - at[:, wrong]

    start, end = leads(own_logits), leads(other_logits)
    if bool(start == end):
        raise ProblemError(
            f"at the digit where their answers differ, this model does not see what differs between "
            f"{expressions[0]} and {expressions[1]}. Try --lens place-attention."
        )
    # A row for each token that is patched alone, and one in which all are.
    num_tokens = own.tokens.ids.shape[1]
    patched = torch.eye(num_tokens, dtype=torch.bool, device=model.device)
    patched = torch.cat([patched, torch.ones_like(patched[:1])])
    effects = []
    places = patchable(model)
    for _, name, head in places:
        logits, _ = run_with_cache(
            model,
            own.tokens.ids.expand(num_tokens + 1, -1),
            own.coordinates,
            {name: _patch(cache[name], patched, head)},
            keep=lambda name: False,
        )
        # Adding 0 turns -0 into 0.
        effects.append((leads(logits) - start) / (end - start) + 0.0)
    effect = torch.stack(effects)
    names = trained_model.format.vocabulary.tokens
    return Patching(
        problem=expressions[0],
        partner=expressions[1],
        tokens=inspected.written,
        partner_tokens=[names[token] for token in other.tokens.ids[0].tolist()],
        predicting=column,
        place=int(own.predicted_place[0, column]),
        right=names[int(right)],
        partner_right=names[int(wrong)],
        components=[label for label, _, _ in places],
        effect=array(effect[:, :-1], "component", "token"),
        effect_everywhere=array(effect[:, -1], "component"),
    )


def patchable(model: Transformer) -> list[tuple[str, str, int | None]]:
    """What is patched: the residual before each layer, then its heads and MLP, and the last residual."""
    found: list[tuple[str, str, int | None]] = []
    parts = components(model)
    per_layer = len(parts) // model.depth
    for depth in range(model.depth):
        name = "embedding" if depth == 0 else f"residual {depth}"
        found.append((name, name_of("resid_pre", depth), None))
        found += parts[depth * per_layer : (depth + 1) * per_layer]
    return [*found, ("last residual", name_of("resid_post", model.depth - 1), None)]


def make_partner(inspected: InspectedProblem) -> Problems:
    """The same problem with one digit changed so that one carry is another.

    The lowest column is changed where that can be done without changing how long anything
    written is.
    """
    trained_model, problem = inspected.trained_model, inspected.problem
    own = carries(trained_model, problem)
    candidates = _one_digit_changed(problem)
    changed = (carries(trained_model, candidates) != own).sum(dim=1)
    for row in (changed == 1).nonzero().squeeze(1).tolist():
        partner = candidates[row : row + 1]
        if _are_alike(inspected.lines, write_lines(trained_model, partner)):
            return partner
    raise ProblemError(
        f"no single digit of {inspected.text} can be changed so that one carry changes and the "
        "answer keeps its length. Type another problem of equal lengths behind --with."
    )


def _one_digit_changed(problem: Problems) -> Problems:
    """Every problem with one other digit, leading zeros left out; lowest columns first."""
    found = []
    _, operands, width = problem.digits_BNW.shape
    lengths = problem.lengths_BN[0].tolist()
    for column in range(width):
        for operand in range(operands):
            leads = column == lengths[operand] - 1 and column > 0
            if column >= lengths[operand]:
                continue
            for digit in range(int(leads), 10):
                if digit != int(problem.digits_BNW[0, operand, column]):
                    digits = problem.digits_BNW[0].clone()
                    digits[operand, column] = digit
                    found.append(digits)
    rows = torch.zeros(len(found), dtype=torch.int64)
    shapes = Shapes(problem.lengths_BN[rows], problem.operation_B[rows])
    return Problems(torch.stack(found), shapes)


def _where_answers_differ(own: Lines, other: Lines, problem: str, partner: str) -> int:
    """The number of the token that predicts the highest place at which the right answers differ."""
    if not _are_alike(own, other):
        raise ProblemError(
            f"{problem} and {partner} are not written alike, token by token. Type a problem behind "
            "--with whose operands and answer have the same lengths."
        )
    differs = own.answers & (own.labels != other.labels)
    if not bool(differs.any()):
        raise ProblemError(
            f"{problem} and {partner} have the same answer. Type another problem behind --with."
        )
    return int(torch.where(differs, own.predicted_place, -9)[0].argmax())


def _are_alike(own: Lines, other: Lines) -> bool:
    """Whether two lines have the same fields and places, token by token."""
    return own.labels.shape == other.labels.shape and bool(
        (own.tokens.field == other.tokens.field).all()
        and (own.tokens.place == other.tokens.place).all()
    )


def _patch(partner_activation: Tensor, patched_BT: Tensor, head: int | None) -> Hook:
    def hook(activation: Tensor) -> Tensor:
        chosen = patched_BT.view(*patched_BT.shape, *[1] * (activation.dim() - 2))
        if head is None:
            return torch.where(chosen, partner_activation, activation)
        heads = torch.arange(activation.shape[2], device=activation.device) == head
        return torch.where(chosen & heads.unsqueeze(-1), partner_activation, activation)

    return hook
