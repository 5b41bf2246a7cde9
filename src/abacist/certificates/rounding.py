"""Rigorous bounds on logits: the function of real numbers, and every float32 implementation of it.

The weights of a model define a function of real numbers: attention over the visible tokens only,
sums and products without rounding. This module evaluates it in float64 and carries along, for every
number x of the calculation, two bounds:

    own     |computed x - real x|           what float64 itself may have lost here
    error   |implemented x - real x|        what an implementation in lower precision may lose

So a real logit lies within `value ± own`, and the logit of any implementation within
`value ± (own + error)`. Both bounds follow from the standard model of rounding (Higham, *Accuracy and
Stability of Numerical Algorithms*, 2nd edition, §2.2 and §3.1): with the unit roundoff u, an operation
returns its exact result times 1 + δ, |δ| ≤ u, plus at most `underflow`; a sum of n products, in any
order and with or without fused multiply-add, errs by at most γₙ = nu / (1 - nu) times the sum of the
absolute products. In addition,

* exp, erf and square roots are within 4 ulps, and exp(x) is 0 below -200;
* a variance may be computed in two passes, in one pass, or by Welford's method;
* a softmax may subtract any number near its maximum first, may rescale as it goes (as FlashAttention
  does), and may divide before or after the values are added;
* the output matrix of attention may be applied to each value before the values are added, and its
  bias and the residual stream may be added in the same sum (as `models.attention_tables` does);
* numbers stay below 2¹²⁶: where an intermediate result could be larger, the bound is infinite,
  because an implementation may overflow;
* the bias b of a position encoding that an extension defines is within 2⁸ u (1 + |b|), by assumption;
  b itself is the number that the extension's code returns with the weights in float64, so that the
  function of real numbers has a table of known biases, one for each difference in the window;
* a masked score is at most -10²⁹, so the exponential of its distance from the largest score is 0 and
  the token adds nothing. This is why whole lines obey the bounds of their receptive fields.

So the bound holds on any device and for any batch size, if its kernels keep these rules. PyTorch's
float32 does; TF32 and bfloat16 round the factors of products as well, for which there are `TF32` and
`BFLOAT16` with bounds of their own.

The bounds are sums and products of positive numbers, so evaluating them in float64 loses at most a
relative 10⁻¹², for which `enclosures.SLACK` makes up.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor, nn

from abacist.certificates.enclosures import (
    FLOAT32,
    FLOAT64,
    SLACK,
    Enclosure,
    Normed,
    Precision,
    finite_product,
    stack,
)
from abacist.certificates.norm_jacobian import NormAt
from abacist.certificates.receptive_fields import NotProvable, Pattern
from abacist.models.attention import Attention
from abacist.models.block import MLP, Block
from abacist.models.encodings import AlibiBias, DifferenceBias
from abacist.models.transformer import Transformer
from abacist.models.views import View

_NUMBERS_AT_ONCE = 1 << 22
"""Size of the largest tensors, Jacobians of the hidden layer, that are held at a time."""
_NEAREST_TOKENS = 6
"""Number of wrong tokens, those with the smallest margins, for which rounding is bounded most closely."""
_ULPS = 4
"""Largest error of exp, erf and square roots, in units in the last place."""
_ROUNDINGS_OF_OWN_BIAS = 2**8
"""Number of units roundoff by which the bias of an extension's encoding may be off."""
Closeness = Literal["quick", "close", "closest"]
"""How closely rounding is bounded; closer takes longer."""
_LIPSCHITZ = {"relu": 1.0, "gelu": 1.13, "silu": 1.1}
"""Largest slope of each activation, rounded up."""


@dataclass(frozen=True)
class MarginBound:
    """Margins of the right tokens, right logit minus the best wrong one, with bounds; (n,) each."""

    computed: Tensor
    """The margin as float64 computes it."""
    real: Tensor
    """A lower bound on the margin in the function of real numbers."""
    implemented: Tensor
    """A lower bound on the margin of every implementation."""

    @property
    def rounding(self) -> Tensor:
        """The part of a margin that an implementation can lose, at most."""
        return self.real - self.implemented


class BoundedModel:
    """A trained model that computes enclosures of its logits.

    Args:
        exact: the model with its weights converted to float64, which is exact.
        precision: how the implementations round whose logits are bounded.

    Raises `NotProvable` for architectures whose rounding is not bounded so far. A proof refuses them
    before, but no bound may depend on that.
    """

    def __init__(self, exact: Transformer, precision: Precision = FLOAT32) -> None:
        config = exact.config
        if config.norm_order != "pre" or config.query_key_norm or config.length_scaling:
            raise NotProvable("so far, rounding is bounded for plain pre-normalised layers only.")
        if config.injection == "sublayers":
            raise NotProvable("so far, there is no bound on what is injected within layers.")
        if any(scheme.adds == "rotation" for scheme in config.positions):
            raise NotProvable("so far, there is no bound on the rounding of rotary encodings.")
        self.model, self.precision = exact, precision
        widths = config.mlp_width * config.width
        self.cases_at_once = max(32, _NUMBERS_AT_ONCE // widths)

    @property
    def _has_jacobian(self) -> bool:
        """Whether the last MLP is a plain one between two norms, for which there is a closer bound."""
        block, model = self.model.blocks[-1], self.model
        assert isinstance(block, Block)
        plain = block.mlp.gate is None and isinstance(model.final_mlp, nn.Identity)
        norms = (block.mlp_norm, model.final_norm)
        return plain and not any(isinstance(norm, nn.Identity) for norm in norms)

    @torch.no_grad()
    def logits(self, pattern: Pattern, ids: Tensor) -> Enclosure:
        """Enclose the logits (n, V) after receptive fields, ids (n, M), of one pattern."""
        return self._read_off(self._before_last_mlp(pattern, ids))

    @torch.no_grad()
    def margins(
        self, pattern: Pattern, ids: Tensor, target: Tensor, enough: float = torch.inf
    ) -> MarginBound:
        """Bound the margins of the right next tokens, int64 (n,), after receptive fields (n, M).

        `logits` adds up absolute values from layer to layer, as if all errors could conspire. Here
        the errors that reach the last MLP pass through the Jacobian of all that follows, which is
        far smaller; what the Jacobian leaves out is of second order and bounded as well.

        Closer bounds take longer. A case for which a quick bound leaves at least `enough` of the
        margin gets no closer one.
        """
        resid = self._before_last_mlp(pattern, ids)
        logits = self._read_off(resid)
        right = target.unsqueeze(1)
        difference = logits.value.gather(1, right) - logits.value
        own = logits.own.gather(1, right) + logits.own + 4 * FLOAT64.unit * difference.abs()
        real = difference - own * SLACK
        loss = ((logits.error.gather(1, right) + logits.error) * SLACK).nan_to_num(
            nan=torch.inf, posinf=torch.inf
        )
        if self._has_jacobian:
            self._bound_closer(resid, target, real, loss, enough)
        margins = (
            bound.scatter(1, right, torch.inf).amin(dim=1)
            for bound in (difference, real, real - loss)
        )
        return MarginBound(*margins)

    def _bound_closer(
        self, resid: Enclosure, target: Tensor, real: Tensor, loss: Tensor, enough: float
    ) -> None:
        """Lower the bounds `loss` on what rounding takes off the margins `real`, (n, V) each.

        Cases for which a quick bound is not enough get a close one, and those for which the close
        one is not enough either, or a far token decides, the closest one.
        """
        right = target.unsqueeze(1)
        others = real.scatter(1, right, torch.inf)
        near = others.topk(min(_NEAREST_TOKENS, real.shape[1]), dim=1, largest=False).indices
        every = torch.arange(real.shape[1]).expand_as(real)
        unsure = (others.amin(dim=1) > 0).nonzero().squeeze(1)
        attempts: tuple[tuple[Closeness, Tensor], ...] = (
            ("quick", near),
            ("close", near),
            ("closest", every),
        )
        for closeness, tokens in attempts:
            if not len(unsure):
                return
            closer = self._loss_by_jacobian(
                resid[unsure], target[unsure], tokens[unsure], closeness
            )
            loss[unsure] = torch.minimum(loss[unsure], closer)
            left = others[unsure] - loss[unsure]
            smallest = left.amin(dim=1)
            settled = smallest >= enough
            if closeness == "close":
                settled |= (smallest > 0) & (left.gather(1, near[unsure]).amin(dim=1) <= smallest)
            unsure = unsure[~settled]

    def _before_last_mlp(self, pattern: Pattern, ids: Tensor) -> Enclosure:
        """Enclose the residual stream of the last token before the last MLP, (n, D)."""
        model = self.model
        coordinates = model.coordinates_by_scheme(pattern.coordinates)
        view, _ = model.views(coordinates, 0, "dense")
        assert isinstance(view, View)
        visible_MM = view.visible[0]
        embedded = Enclosure.exact(model.embedding.weight[ids])
        embedded = self._norm(model.embedding_norm, embedded)
        state = self._initial_state(embedded)
        last_layer = len(model.blocks) - 1
        for recurrence in range(model.config.recurrences):
            state = self._inject(state, embedded)
            for layer, block in enumerate(model.blocks):
                assert isinstance(block, Block)
                bias = self._score_bias(block.attention, view.bias_inputs)
                is_last = recurrence == model.config.recurrences - 1 and layer == last_layer
                state = self._attend(block, state, visible_MM, bias, is_last)
                if not is_last:
                    state = self._add(
                        state, self._mlp(block.mlp, self._norm(block.mlp_norm, state))
                    )
        return state[:, -1]

    def _read_off(self, resid: Enclosure) -> Enclosure:
        """Enclose the logits (n, V) from the residual stream before the last MLP, (n, D)."""
        model, block = self.model, self.model.blocks[-1]
        assert isinstance(block, Block)
        resid = self._add(resid, self._mlp(block.mlp, self._norm(block.mlp_norm, resid)))
        if isinstance(model.final_mlp, MLP):
            resid = self._mlp(model.final_mlp, resid)
        return self._linear(self._norm(model.final_norm, resid), model.head)

    # Layers --------------------------------------------------------------------------------

    def _initial_state(self, embedded: Enclosure) -> Enclosure:
        if self.model.config.initial_state == "input":
            return embedded
        return Enclosure.exact(torch.zeros_like(embedded.value))

    def _inject(self, state: Enclosure, embedded: Enclosure) -> Enclosure:
        if self.model.config.injection == "add":
            return self._add(state, embedded)
        if self.model.injection is not None:
            return self._linear(stack([state, embedded], -1), self.model.injection.mix)
        return state

    def _attend(
        self, block: Block, state: Enclosure, visible: Tensor, bias: Enclosure, is_last: bool
    ) -> Enclosure:
        """Add one layer's attention, for the last token only if nothing else is needed: (n, M or 1, D)."""
        first = state.value.shape[1] - 1 if is_last else 0
        normed = self._norm_apart(block.attention_norm, state)
        mixed = self._attention(block.attention, normed, visible[first:], bias[first:], first)
        # One sum may hold the stream, the bias and every value of every head.
        terms = state.value.shape[1] * block.attention.num_heads + 2
        return self._add(state[:, first:], mixed, roundings=terms)

    def _attention(
        self, attention: Attention, x: Normed, visible_QM: Tensor, bias: Enclosure, first: int
    ) -> Enclosure:
        n, num_keys, _ = x.x.value.shape
        heads = (attention.num_heads, attention.head_width)
        whole = x.enclosure
        query = self._project(x, whole, attention.query, heads, first)
        key = self._project(x, whole, attention.key, heads)
        value = self._linear(whole, attention.value).reshaped(n, num_keys, *heads)
        # Scaling by K^-1/2 rounds the factor and the product, before or after the sum.
        score = self._score(query, key, roundings=3)
        scale = heads[1] ** -0.5 * SLACK
        score = Enclosure(score.value * heads[1] ** -0.5, score.own * scale, score.error * scale)
        score = self._add(score, bias, roundings=1 + len(attention.relative))
        return self._mix(self._softmax(score, visible_QM), value, attention.output)

    def _project(
        self, x: Normed, whole: Enclosure, linear: nn.Linear, heads: tuple[int, int], first: int = 0
    ) -> Normed:
        """Project normalised numbers (n, M, D) from token `first` on to queries or keys (n, Q, H, K)."""
        n = len(x.size)
        projected = self._linear(x.x[:, first:], linear, whole.largest[:, first:])
        known, size = x.direction[:, first:], x.size[:, first:]
        direction = nn.functional.linear(known, linear.weight)
        # Directions are known up to less than 2⁻⁴⁰ of the absolute values of their sums.
        unknown = finite_product(known.abs() @ linear.weight.abs().t(), 2.0**-40 * size).sum(-2)
        projected = Enclosure(projected.value, projected.own, projected.error + unknown)
        return Normed(
            projected.reshaped(n, -1, *heads),
            direction.reshape(n, -1, 2, *heads).transpose(2, 3),
            size.unsqueeze(2),
        )

    def _score(self, query: Normed, key: Normed, roundings: int) -> Enclosure:
        """Enclose the products of queries (n, Q, H, K) and keys (n, T, H, K): (n, Q, T, H).

        With q̂ = q + Σ sd + e, where a common error is a multiple s of a direction d, and k̂ likewise,
        q̂k̂ - qk = Σ s dk + Σ s'qd' + (Σ sd)(Σ s'd') + ek̂ + (q + Σ sd)e'.
        """

        def product(a: Tensor, b: Tensor) -> Tensor:
            return torch.einsum("nqhk,nthk->nqth", a, b)

        whole_query, whole_key = query.enclosure, key.enclosure
        terms = query.x.value.shape[-1] + roundings
        score = self._product(whole_query, whole_key, "nqhk,nthk->nqth", terms)
        of_query = finite_product(query.direction.abs(), query.size).sum(dim=-2)
        of_key = finite_product(key.direction.abs(), key.size).sum(dim=-2)
        by_query = torch.einsum("nqhck,nthk->nqthc", query.direction, key.x.value).abs()
        by_key = torch.einsum("nqhk,nthck->nqthc", query.x.value, key.direction).abs()
        sizes = query.size.squeeze(-1).unsqueeze(2), key.size.squeeze(-1).unsqueeze(1)
        error = finite_product(by_query, sizes[0]).sum(-1) + finite_product(by_key, sizes[1]).sum(
            -1
        )
        error = error + product(of_query, of_key + key.x.own) + product(query.x.own, of_key)
        error = error + product(query.x.error, whole_key.largest)
        error = error + product(query.x.value.abs() + query.x.own + of_query, key.x.error)
        # Products of known numbers in float64 err by less than 2⁻⁴⁰ of their absolute values.
        error = error + 2.0**-40 * (
            product(of_query, key.x.value.abs()) + product(query.x.value.abs(), of_key)
        )
        size = product(whole_query.largest, whole_key.largest)
        error = error + self._product_error(terms, size)
        return Enclosure(score.value, score.own, torch.minimum(score.error, error * SLACK))

    def _mix(self, weights: Enclosure, value: Enclosure, output: nn.Linear) -> Enclosure:
        """Enclose the output (n, Q, D) for values (n, T, H, K) with attention weights (n, Q, T, H).

        Weights sum to 1 up to the rounding of their sum, so their errors count only as far as the
        values differ from the mixture z: Σ p̂v̂ - Σ pv = Σ p̂(v̂ - v) + Σ (p̂ - p)(v - z) + z Σ (p̂ - p).
        The second sum goes through the output matrix as it is, without absolute values.
        """
        terms, num_heads, head_width = value.value.shape[1:]
        mixed = self._product(weights, value, "nqth,nthk->nqhk", terms)
        apart = value.value.unsqueeze(1) - mixed.value.unsqueeze(2)
        own = value.own.unsqueeze(1) + mixed.own.unsqueeze(2) + 2.0**-40 * apart.abs()
        error = torch.einsum("nqth,nqthk->nqhk", weights.error, own)
        error = error + torch.einsum("nqth,nthk->nqhk", weights.largest, value.error)
        size = torch.einsum("nqth,nthk->nqhk", weights.largest, value.largest)
        error = error + _sum_error(self.precision, terms) * (mixed.value.abs() + mixed.own)
        # A running sum that is rescaled rounds twice for each value, and the output matrix may come first.
        error = error + self._product_error(2 * terms * num_heads + head_width + 2, size)
        # Values may be added before they are divided by the sum of the exponentials.
        undivided = value.largest.sum(dim=1, keepdim=True).expand_as(error)
        error = self._or_overflow(error * SLACK, undivided)
        n, num_queries = error.shape[:2]
        shape = n, num_queries, num_heads * head_width
        rest = Enclosure(mixed.value, mixed.own, error).reshaped(*shape)
        out = self._linear(rest, output, mixed.reshaped(*shape).largest)
        by_head = output.weight.view(-1, num_heads, head_width)
        through = torch.einsum("nqthk,dhk->nqthd", apart, by_head).abs()
        of_weights = torch.einsum("nqth,nqthd->nqd", weights.error, through)
        return Enclosure(out.value, out.own, (out.error + of_weights) * SLACK)

    def _score_bias(self, attention: Attention, pairs: Sequence[Tensor]) -> Enclosure:
        """Enclose what the position schemes add to scores, (Q, T, H)."""
        total = Enclosure.exact(torch.zeros(*pairs[0].shape[1:3], attention.num_heads))
        for relative, features in zip(attention.relative, pairs, strict=True):
            part = Enclosure.exact(relative(features)[0])
            if isinstance(relative, AlibiBias):
                part = self._rounded(part, part.value.abs(), 1)
            elif isinstance(relative, DifferenceBias):
                size = _ROUNDINGS_OF_OWN_BIAS * (1 + part.value.abs())
                # At least in float32, whatever the precision: a formula may contain conversions.
                unit = max(FLOAT32.unit, self.precision.unit)
                part = Enclosure(part.value, torch.zeros_like(size), size * unit * SLACK)
            total = self._add(total, part)
        return total

    def _mlp(self, mlp: MLP, x: Enclosure) -> Enclosure:
        hidden = self._activation(mlp.activation, self._linear(x, mlp.up))
        if mlp.gate is not None:
            gate = self._linear(x, mlp.gate)
            hidden = self._product(hidden, gate, "...f,...f->...f", 1)
        return self._linear(hidden, mlp.down)

    # Operations ----------------------------------------------------------------------------

    def _rounded(self, x: Enclosure, magnitude: Tensor, roundings: int) -> Enclosure:
        """Add the error of several roundings of numbers up to `magnitude`, as float64 computes them."""
        lower = self.precision
        implemented = magnitude + x.own + x.error
        error = x.error + lower.elementwise(roundings) * implemented + roundings * lower.underflow
        return Enclosure(
            x.value,
            (x.own + FLOAT64.elementwise(roundings) * magnitude + FLOAT64.underflow) * SLACK,
            self._or_overflow(error * SLACK, implemented),
        )

    def _add(self, x: Enclosure, y: Enclosure, roundings: int = 1) -> Enclosure:
        total = Enclosure(x.value + y.value, x.own + y.own, x.error + y.error)
        return self._rounded(total, (x.value.abs() + y.value.abs()) * SLACK, roundings)

    def _linear(self, x: Enclosure, linear: nn.Linear, largest: Tensor | None = None) -> Enclosure:
        """Enclose `linear(x)`: sums of products with exact weights.

        Args:
            largest: a bound on the absolute values of `x`, if it has further errors.
        """
        weight, bias = linear.weight, linear.bias
        size = weight.abs().t()
        value = nn.functional.linear(x.value, weight, bias)
        terms = linear.in_features + 1
        extra = 0.0 if bias is None else bias.abs()
        magnitude = x.value.abs() @ size + extra
        implemented = (x.largest if largest is None else largest) @ size + extra
        own = x.own @ size + FLOAT64.gamma(terms) * magnitude + terms * FLOAT64.underflow
        error = x.error @ size + self._product_error(terms, implemented)
        return Enclosure(value, own * SLACK, error * SLACK)

    def _product(
        self, x: Enclosure, y: Enclosure, equation: str, terms: int, roundings: int = 1
    ) -> Enclosure:
        """Enclose an einsum of two enclosures that adds `terms` products."""
        terms = terms + roundings

        def product(a: Tensor, b: Tensor) -> Tensor:
            return torch.einsum(equation, a, b)

        value = product(x.value, y.value)
        x_size, y_size = x.value.abs(), y.value.abs()
        own = product(x.own, y_size + y.own) + product(x_size, y.own)
        own = own + FLOAT64.gamma(terms) * product(x_size, y_size) + terms * FLOAT64.underflow
        # |x̂ŷ - xy| ≤ |x̂ - x| |ŷ| + |x| |ŷ - y|
        error = product(x.error, y.largest) + product(x_size + x.own, y.error)
        error = error + self._product_error(terms, product(x.largest, y.largest))
        return Enclosure(value, own * SLACK, error * SLACK)

    def _product_error(self, terms: int, magnitude: Tensor) -> Tensor:
        """Bound the rounding of sums of products whose absolute values add up to `magnitude`."""
        precision = self.precision
        factors = (1 + precision.factor_unit) ** 2
        relative = precision.gamma(terms) * factors + factors - 1
        return self._or_overflow(relative * magnitude + 2 * terms * precision.underflow, magnitude)

    def _or_overflow(self, error: Tensor, magnitude: Tensor) -> Tensor:
        """Return `error`, or infinity where numbers up to `magnitude` could overflow or are not known."""
        return torch.where(magnitude < self.precision.largest, error, torch.inf)

    def _norm(self, norm: nn.Module, x: Enclosure, rounding_only: bool = False) -> Enclosure:
        """Enclose LayerNorm or RMSNorm over the last dimension, see `_norm_apart`."""
        return self._norm_apart(norm, x, rounding_only).enclosure

    def _norm_apart(self, norm: nn.Module, x: Enclosure, rounding_only: bool = False) -> Normed:
        """Enclose LayerNorm or RMSNorm over the last dimension, with common errors apart.

        With `rounding_only`, the error is that of normalising the implementation's own input, and
        does not include what the error of that input passes on.
        """
        if isinstance(norm, nn.Identity):
            none = torch.zeros(*x.value.shape[:-1], 2, 1, dtype=torch.float64)
            return Normed(x, none.expand(*none.shape[:-1], x.value.shape[-1]), none)
        assert isinstance(norm, nn.LayerNorm | nn.RMSNorm)
        assert norm.eps is not None
        width, eps = x.value.shape[-1], norm.eps
        lower = self.precision

        def mean(values: Tensor) -> Tensor:
            return values.mean(dim=-1, keepdim=True)

        size, implemented = x.value.abs(), x.largest
        if isinstance(norm, nn.LayerNorm):
            middle = mean(x.value)
            centred = x.value - middle
            own = x.own + mean(x.own) + FLOAT64.gamma(width + 2) * (size + mean(size))
            passed_on = x.error + mean(x.error)
            mean_error = lower.gamma(width + 2) * mean(implemented)
        else:
            middle, centred = torch.zeros_like(x.value[..., :1]), x.value
            own, passed_on, mean_error = x.own, x.error, torch.zeros_like(middle)
        variance = mean(centred * centred)
        own_variance = mean((2 * centred.abs() + own) * own) + FLOAT64.gamma(width + 4) * variance
        own_variance = own_variance * SLACK
        # The variance of changed inputs, and then its computation by any of the three methods.
        real_size = centred.abs() + own
        passed_variance = mean((2 * real_size + passed_on) * passed_on) * SLACK
        computed_variance = 4 * lower.gamma(width + 4) * mean(implemented**2) * SLACK

        def inverse_root(bound: Tensor, at_least: Tensor) -> Tensor:
            """Bound the change of v^-1/2 if v changes by `bound` and is never below `at_least`."""
            possible = at_least > 0
            change = 0.5 * bound * at_least.clamp(min=1e-300) ** -1.5
            return torch.where(possible, change, torch.inf)

        smallest = variance + eps - own_variance
        root = (variance + eps) ** -0.5
        own_root = inverse_root(own_variance, smallest) + 8 * FLOAT64.unit * root
        largest_root = (root + own_root) * SLACK
        smallest_passed = smallest - passed_variance
        passed_root = inverse_root(passed_variance, smallest_passed)
        root_error = inverse_root(computed_variance, smallest_passed - computed_variance)
        root_error = root_error + (2 * _ULPS + 4) * lower.unit * (
            largest_root + passed_root + root_error
        )
        implemented_root = (largest_root + passed_root + root_error) * SLACK
        gain = norm.weight.abs()
        shift = getattr(norm, "bias", None)
        offset = 0.0 if shift is None else shift.abs()
        value = centred * root * norm.weight
        value = value if shift is None else value + shift
        own_out = gain * (own * largest_root + centred.abs() * own_root)
        own_out = own_out + 4 * FLOAT64.unit * (gain * real_size * largest_root + offset)
        # Implementations scale x - mean, or x and the mean apart.
        apart = implemented + middle.abs() + mean(implemented)
        # Common to all numbers of a token are gain · centred · (error of the root) and
        # gain · root · (error of the mean); the rest is of second order.
        error = gain * passed_on * root_error
        error = error + gain * mean_error * (implemented_root - root)
        error = error + gain * own * root_error
        if not rounding_only:
            error = error + gain * (passed_on * implemented_root + real_size * passed_root)
        error = error + 10 * lower.unit * (gain * apart * implemented_root + offset)
        error = error + 8 * lower.underflow
        squares = (width + 1) * (implemented**2).amax(dim=-1, keepdim=True)
        scaled = (gain + 1) * (apart + 1) * (implemented_root + 1)
        error = self._or_overflow(error * SLACK, torch.maximum(squares, scaled))
        direction = torch.stack([norm.weight * centred, norm.weight * root.expand_as(centred)], -2)
        common = torch.stack([root_error, mean_error], -2) * SLACK
        return Normed(Enclosure(value, own_out * SLACK, error), direction, common)

    def _activation(self, activation: nn.Module, x: Enclosure) -> Enclosure:
        """Enclose ReLU, GELU (exact, or by tanh) or SiLU."""
        value: Tensor = activation(x.value)
        kind = _kind(activation)
        slope = _LIPSCHITZ[kind]
        own, error = slope * x.own, slope * x.error
        if kind != "relu":
            # x/2 (1 + erf(x/√2)): 4 ulps of erf are 8u, the rounded argument adds u, the sum 2u,
            # and the products 3u of a result of at most |x|. SiLU, x/(1 + exp(-x)), loses less.
            # GELU by tanh loses as much: 6u of the argument times max t·tanh'(t)/2 < 0.23 is below 2u.
            roundings = 2 * _ULPS + 8
            own = own + roundings * FLOAT64.unit * x.value.abs()
            error = error + roundings * self.precision.unit * x.largest
            error = error + roundings * self.precision.underflow
        return Enclosure(value, own * SLACK, error * SLACK)

    def _softmax(self, score: Enclosure, visible_QM: Tensor) -> Enclosure:
        """Enclose the attention weights (n, Q, T, H) of the visible tokens; others weigh exactly 0."""
        hidden = ~visible_QM[None, :, :, None]
        value = score.value.masked_fill(hidden, -torch.inf).softmax(dim=2)
        terms = score.value.shape[2]

        def bound(precision: Precision, of_scores: Tensor, size: Tensor) -> Tensor:
            """Bound |p̂ - p| where every exponential is right up to a factor e^±α.

            The odds p / (1 - p) change by a factor of at most e^2α, so p by p (1 - p) (e^2α - 1).
            """
            # The distance of a score from the number subtracted is at most 2 · size.
            alpha = of_scores + precision.unit * 2 * size
            alpha = alpha.masked_fill(hidden, 0.0).amax(dim=2, keepdim=True)
            # Exponentials, and the rescalings of running sums.
            alpha = alpha + (terms + 1) * (2 * _ULPS + 2) * precision.unit
            odds = torch.expm1(2 * alpha * SLACK) * value * (1 - value)
            return odds + (value + odds) * _sum_error(precision, terms)

        def largest_size(sizes: Tensor) -> Tensor:
            return sizes.masked_fill(hidden, 0.0).amax(dim=2, keepdim=True)

        own = bound(FLOAT64, score.own, largest_size(score.value.abs())) + FLOAT64.underflow
        error = bound(self.precision, score.error + score.own, largest_size(score.largest))
        error = error + own + 2 * terms * self.precision.underflow
        return Enclosure(
            value,
            (own * SLACK).masked_fill(hidden, 0.0),
            (error * SLACK).masked_fill(hidden, 0.0),
        )

    # The last MLP and the head, by their Jacobian ------------------------------------------

    def _loss_by_jacobian(
        self, resid: Enclosure, target: Tensor, near: Tensor, closeness: Closeness
    ) -> Tensor:
        """Bound how much of right logit minus each logit an implementation can lose, (n, V).

        The bound is closest for the tokens `near`, int64 (n, R), whose margins are taken back through
        the whole chain; for others, the errors of two logits are added. A `close` bound needs a
        matrix for each case, the Jacobian up to r below. In the `closest` one the error of the
        hidden layer goes through its Jacobian as well, which helps where the MLP bends strongly.

        With m the residual stream and δ its error, the chain is

            n = norm(m)    h = Un + b    a = f(h)    r = m + Da + b'    y = H norm(r)

        To first order the error of y is H J' (1 + D f'(h) U J) δ, with J and J' the Jacobians of the
        two norms; the roundings of n, h, a, r and norm(r) pass through the factors that follow them.
        """
        block, model = self.model.blocks[-1], self.model
        assert isinstance(block, Block)
        mlp, lower = block.mlp, self.precision
        up, down, head = mlp.up.weight, mlp.down.weight, model.head.weight
        error_m = (resid.error + resid.own) * SLACK
        first = NormAt(block.mlp_norm, resid.value)
        normed = self._norm(block.mlp_norm, Enclosure.exact(resid.value))
        # What rounding adds to the normalised stream, beyond what the Jacobian passes on.
        at_mlp = Enclosure(resid.value, torch.zeros_like(error_m), error_m)
        rounding_n = self._norm(block.mlp_norm, at_mlp, rounding_only=True).error
        rounding_n = rounding_n + first.remainder(error_m)
        hidden = nn.functional.linear(normed.value, up, mlp.up.bias)
        change_n = first.passed_on(error_m)
        size_n = normed.value.abs() + change_n + rounding_n
        rounding_h = self._product_error(mlp.up.in_features + 1, size_n @ up.abs().t())
        rounding_h = rounding_h + self._product_error(1, _size(mlp.up.bias))
        error_h = (change_n + rounding_n) @ up.abs().t() + rounding_h
        if closeness == "closest":
            change_h = _weighted(first.before(up.expand(len(hidden), -1, -1)), error_m)
            # The rounding of the Jacobian itself is far below 2⁻⁴⁰ of the sum of absolute values.
            change_h = change_h + 2.0**-40 * (change_n @ up.abs().t())
            error_h = change_h + rounding_n @ up.abs().t() + rounding_h
        slope, curvature = _slope(mlp.activation, hidden, error_h)
        # ReLU is off by at most its own change near its kink, GELU by half the curvature.
        implemented = Enclosure(hidden, torch.zeros_like(hidden), error_h)
        unrounded = _LIPSCHITZ[_kind(mlp.activation)] * error_h
        activated = self._activation(mlp.activation, implemented)
        rounding_a = (activated.error - unrounded).clamp(min=0) + curvature
        size_a = activated.value.abs() + activated.error
        rounding_r = self._product_error(mlp.down.in_features + 1, size_a @ down.abs().t())
        rounding_r = rounding_r + self._product_error(1, _size(mlp.down.bias))
        output = nn.functional.linear(activated.value, down, mlp.down.bias)
        rounding_r = rounding_r + 2 * lower.unit * (
            resid.value.abs() + error_m + output.abs() + activated.error @ down.abs().t()
        )
        if closeness == "quick":
            error_r = error_m + (slope.abs() * error_h) @ down.abs().t()
        else:
            through = torch.eye(down.shape[0], dtype=torch.float64) + first.before(
                down @ (slope.unsqueeze(-1) * up)
            )
            into_h = rounding_n @ up.abs().t() + rounding_h
            error_r = _weighted(through, error_m) + (slope.abs() * into_h) @ down.abs().t()
        error_r = (error_r + rounding_a @ down.abs().t() + rounding_r) * SLACK
        final = NormAt(model.final_norm, resid.value + output)
        at_final = Enclosure(resid.value + output, torch.zeros_like(error_r), error_r)
        rounding_y = self._norm(model.final_norm, at_final, rounding_only=True).error
        rounding_y = rounding_y + final.remainder(error_r)
        normed_final = self._norm(model.final_norm, Enclosure.exact(at_final.value))
        size_y = normed_final.value.abs() + final.passed_on(error_r) + rounding_y
        logit_error = self._product_error(model.head.in_features + 1, size_y @ head.abs().t())
        logit_error = logit_error + self._product_error(1, _size(model.head.bias))
        logit_error = logit_error + logit_error.gather(1, target.unsqueeze(1))
        # The errors of the normalised stream, and of each logit.
        error_y = (
            _weighted(final.before(torch.eye(head.shape[1], dtype=torch.float64)), error_r)
            + rounding_y
        )
        far = error_y @ head.abs().t()
        far = far + far.gather(1, target.unsqueeze(1)) + logit_error
        # Rows of the head, right minus near, taken back through everything before.
        rows = head[target].unsqueeze(1) - head[near]
        back_r = final.before(rows)
        back_a = back_r @ down
        back_h = back_a * slope.unsqueeze(1)
        back_n = back_h @ up
        back_m = back_r + first.before(back_n)
        loss = (
            _weighted(back_m, error_m)
            + _weighted(back_n, rounding_n)
            + _weighted(back_h, rounding_h)
            + _weighted(back_a, rounding_a)
            + _weighted(back_r, rounding_r)
            + _weighted(rows, rounding_y)
            + logit_error.gather(1, near)
        )
        # The Jacobians are themselves rounded, by less than 2⁻⁴⁰ of sums of absolute values.
        sizes = error_m + (slope.abs() * (change_n @ up.abs().t())) @ down.abs().t()
        rounded = 2.0**-40 * (final.passed_on(sizes) @ head.abs().t())
        rounded = rounded + rounded.gather(1, target.unsqueeze(1))
        closest = torch.minimum(far.gather(1, near), loss)
        bound = far.scatter(1, near, closest) + rounded
        return (bound * SLACK).nan_to_num(nan=torch.inf, posinf=torch.inf)


def _sum_error(precision: Precision, terms: int) -> float:
    """Bound how far attention weights are from adding up to 1: by their sum, its rescalings and the division."""
    return (2 * terms + 4) * precision.unit * SLACK


def _weighted(rows: Tensor, error: Tensor) -> Tensor:
    """Bound rows (n or 1, R, D) times any vector within ± error (n, D): (n, R)."""
    return (rows.abs() @ error.unsqueeze(-1)).squeeze(-1)


def _size(bias: Tensor | None) -> Tensor:
    return torch.zeros(1, dtype=torch.float64) if bias is None else bias.abs()


def _kind(activation: nn.Module) -> str:
    return {nn.ReLU: "relu", nn.GELU: "gelu", nn.SiLU: "silu"}[type(activation)]


def _slope(activation: nn.Module, x: Tensor, error: Tensor) -> tuple[Tensor, Tensor]:
    """Return the slope of an activation, and a bound on what it leaves out within ± error."""
    if isinstance(activation, nn.ReLU):
        return (x > 0).double(), torch.where(x.abs() <= error, error, 0.0)
    with torch.enable_grad():
        point = x.detach().requires_grad_()
        (slope,) = torch.autograd.grad(activation(point).sum(), point)
    # |GELU''| ≤ 2φ(0) < 0.8, by tanh as well, and |SiLU''| ≤ 0.5.
    return slope, 0.4 * error**2
