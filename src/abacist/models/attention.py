"""Multi-head attention. One definition, four ways to calculate it.

The way depends on the view (`views.py`) and gives the same result up to rounding:

    dense      scores of all pairs, by batched matrix products
    plain      the same as equations write it, so that hooks can read and replace activations
    windowed   scores of each query with its C candidate keys only
    fused      one GPU kernel that stores no scores (`fused.py`)

Trainings of one-layer models have a fifth, `attention_by_id.py`, which needs no keys of single tokens.

Wherever a view is involved, G is 1 where all lines share their coordinates, else B.
"""

import torch
from torch import Tensor, nn

from abacist.models.config import ModelConfig
from abacist.models.encodings import INVISIBLE, BiasEncoding, QueryKeyEncoding, make_encoding
from abacist.models.fused import FusedView, fused_attention
from abacist.models.hooks import ActivationHook, apply_hook
from abacist.models.views import View

_VECTOR_LENGTH = 16
"""Float32 numbers that a processor with AVX-512 handles at once."""

_INVISIBLE_IN_FLOAT16 = -3e4
"""Score of a pair that must not attend, half as large as the largest number of float16."""


class Attention(nn.Module):
    """Multi-head attention (Vaswani et al., arXiv 1706.03762 §3.2) over the keys of a view.

    softmax(s · q·k + bias) · v, where the bias comes from the position schemes and is INVISIBLE
    for keys that the query does not see. The scale s is 1 / sqrt(K). With query-key
    normalisation (arXiv 2010.04245) it is trained, per head; with length scaling (arXiv
    2501.19399) it is multiplied by a trained factor per head times log n, for n visible keys.
    """

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.num_heads, self.head_width = config.num_heads, config.width_of_head
        all_heads = self.num_heads * self.head_width
        biases = "queries-keys-values" in config.biases
        # Separate projections: splitting the output of a joint one costs a copy in each direction.
        self.query = nn.Linear(config.width, all_heads, bias=biases)
        self.key = nn.Linear(config.width, all_heads, bias=biases)
        self.value = nn.Linear(config.width, all_heads, bias=biases)
        self.output = nn.Linear(all_heads, config.width, bias="attention-output" in config.biases)
        self.relative = nn.ModuleList(
            make_encoding(scheme, config.num_heads)
            for scheme in config.positions
            if scheme.adds == "bias"
        )
        self.scale = None
        if config.query_key_norm:
            # Products of normalised vectors lie between -1 and 1; this is the initial sharpness.
            self.scale = nn.Parameter(torch.full((self.num_heads,), self.head_width**0.5))
        self.length_scale = None
        if config.length_scaling:
            self.length_scale = nn.Parameter(torch.full((self.num_heads,), 0.4))
        self.dropout = config.dropout_of("attention")

    def keys_values(
        self,
        x_TBD: Tensor,
        query_key_encoding: QueryKeyEncoding | None,
        hook: ActivationHook | None = None,
    ) -> tuple[Tensor, Tensor]:
        """Return the keys, with their positions encoded, and the values, (T, B, H, K) each."""
        heads = (self.num_heads, self.head_width)
        key = apply_hook(hook, "hook_k", self.key(x_TBD).unflatten(-1, heads))
        value = apply_hook(hook, "hook_v", self.value(x_TBD).unflatten(-1, heads))
        return self._encoded(key, query_key_encoding), value

    def queries(
        self,
        x_QBD: Tensor,
        query_key_encoding: QueryKeyEncoding | None,
        hook: ActivationHook | None = None,
    ) -> Tensor:
        """Return the queries, with their positions encoded and times the scale, (Q, B, H, K)."""
        query = self.query(x_QBD).unflatten(-1, (self.num_heads, self.head_width))
        query = self._encoded(apply_hook(hook, "hook_q", query), query_key_encoding)
        scale = self.head_width**-0.5 if self.scale is None else self.scale.unsqueeze(-1)
        return query * scale

    def forward(
        self,
        x_QBD: Tensor,
        key_TBHK: Tensor,
        value_TBHK: Tensor,
        view: View | FusedView,
        query_key_encoding: QueryKeyEncoding | None,
        hook: ActivationHook | None = None,
    ) -> Tensor:
        """Return the output of attention for Q query tokens, (Q, B, D).

        Args:
            x_QBD: input of the query tokens.
            key_TBHK: keys from `keys_values`.
            value_TBHK: values from `keys_values`.
            view: the pairs of the Q queries and T keys; must be dense where there is a hook.
            query_key_encoding: position encoding of the query tokens.
            hook: receives every activation.
        """
        query = self.queries(x_QBD, query_key_encoding, hook)
        if isinstance(view, FusedView):
            assert self.length_scale is None, "the fused kernel does not count visible keys"
            z_QBHK = fused_attention(query, key_TBHK, value_TBHK, self.relative, view)
            fused: Tensor = self.output(z_QBHK.flatten(2))
            return fused
        if self.length_scale is not None:
            query = query * self._length_scaling(view, self.length_scale).to(query.dtype)
        bias = self.score_bias(view)
        if torch.float16 in (query.dtype, _autocast_type(query.device)):
            # INVISIBLE would overflow, and a query that sees no key, such as padding, would give NaN.
            bias = bias.clamp(min=_INVISIBLE_IN_FLOAT16)
        bias = bias.to(query.dtype)
        dropout = self.dropout if self.training else 0.0
        if hook is not None:
            assert view.keys is None, "a hook needs the dense path"
            z_QBHK = _plain(query, key_TBHK, value_TBHK, bias, hook)
        elif view.keys is None:
            z_QBHK = _dense(query, key_TBHK, value_TBHK, bias, dropout)
        else:
            z_QBHK = _windowed(query, key_TBHK, value_TBHK, bias, view.keys, dropout)
        out: Tensor = self.output(z_QBHK.flatten(2))
        return out

    def largest_score(self, norm: nn.Module) -> float:
        """Return an upper bound on the absolute value of any attention score, whatever the tokens.

        `norm` is the normalisation whose output this layer reads. Its output has a length of at
        most sqrt(D) times the largest gain, plus the length of the shift; projections and biases
        are bounded by their norms. Valid for models without query-key normalisation and without
        vectors added to queries and keys.
        """
        parameters = dict(norm.named_parameters())
        longest = self.query.in_features**0.5 * float(parameters["weight"].abs().max())
        if "bias" in parameters:
            longest += float(parameters["bias"].norm())
        largest: float = self.head_width**-0.5
        for projection in (self.query, self.key):
            length = float(projection.weight.norm()) * longest
            largest *= length + (0.0 if projection.bias is None else float(projection.bias.norm()))
        return largest + sum(
            bias.largest() for bias in self.relative if isinstance(bias, BiasEncoding)
        )

    def _encoded(self, x_TBHK: Tensor, query_key_encoding: QueryKeyEncoding | None) -> Tensor:
        """Return queries or keys with their positions encoded, and normalised where configured."""
        if query_key_encoding is not None:
            x_TBHK = query_key_encoding.apply(x_TBHK)
        if self.scale is not None:
            x_TBHK = nn.functional.normalize(x_TBHK, dim=-1)
        return x_TBHK

    def _length_scaling(self, view: View, scale_H: Tensor) -> Tensor:
        """Return s log n for queries that see n keys (at least 2), (Q, G, H, 1)."""
        num_visible = view.visible.sum(dim=-1).clamp(min=2).t()
        return (num_visible.unsqueeze(-1).to(scale_H.dtype).log() * scale_H).unsqueeze(-1)

    def score_bias(self, view: View) -> Tensor:
        """Return the sum of all schemes' biases, (G, Q, C, H); INVISIBLE for hidden pairs."""
        bias_GQCH = torch.where(view.visible, 0.0, INVISIBLE).unsqueeze(-1)
        for relative, bias_input in zip(self.relative, view.bias_inputs, strict=True):
            bias_GQCH = bias_GQCH + relative(bias_input)
        return bias_GQCH


def _autocast_type(device: torch.device) -> torch.dtype | None:
    """Return the type of matrix products where torch chooses it; None elsewhere."""
    chosen = torch.is_autocast_enabled(device.type)
    return torch.get_autocast_dtype(device.type) if chosen else None


def _plain(
    query_QBHK: Tensor,
    key_TBHK: Tensor,
    value_TBHK: Tensor,
    bias_GQTH: Tensor,
    hook: ActivationHook,
) -> Tensor:
    """Return attention's mixed values, (Q, B, H, K), calling the hook with every activation."""
    scores = torch.einsum("qbhk,tbhk->bhqt", query_QBHK, key_TBHK)
    scores = hook("hook_attn_scores", scores + bias_GQTH.permute(0, 3, 1, 2))
    pattern = hook("hook_pattern", scores.softmax(dim=-1))
    return hook("hook_z", torch.einsum("bhqt,tbhk->qbhk", pattern, value_TBHK))


def _dense(
    query_QBHK: Tensor, key_TBHK: Tensor, value_TBHK: Tensor, bias_GQTH: Tensor, dropout: float
) -> Tensor:
    """Return attention's mixed values, (Q, B, H, K)."""
    (num_queries, batch, heads, _), num_keys = query_QBHK.shape, len(key_TBHK)
    # Lines and heads together make one batch of matrix products, by strides and without a copy.
    query, key, value = (
        x.flatten(1, 2).transpose(0, 1) for x in (query_QBHK, key_TBHK, value_TBHK)
    )
    scores_BHQT = torch.bmm(query, key.transpose(1, 2)).view(batch, heads, num_queries, num_keys)
    # Adding in place saves a tensor of the size of the scores. A contiguous bias is five times
    # as fast to add as a permuted one.
    pattern = _softmax(scores_BHQT.add_(bias_GQTH.permute(0, 3, 1, 2).contiguous()))
    if dropout:
        pattern = nn.functional.dropout(pattern, dropout)
    z = torch.bmm(pattern.flatten(0, 1), value)
    return z.transpose(0, 1).view(num_queries, batch, heads, -1)


def _softmax(scores_BHQT: Tensor) -> Tensor:
    """Return the softmax over keys; may overwrite its argument where no gradient is needed.

    torch's kernel takes 20 ns per number for rows shorter than a vector register, four times as
    long as the steps below.
    """
    if scores_BHQT.shape[-1] >= _VECTOR_LENGTH:
        return scores_BHQT.softmax(dim=-1)
    largest = scores_BHQT.detach().amax(dim=-1, keepdim=True)
    if torch.is_grad_enabled():
        weights = (scores_BHQT - largest).exp()
        return weights / weights.sum(dim=-1, keepdim=True)
    weights = scores_BHQT.sub_(largest).exp_()
    return weights.div_(weights.sum(dim=-1, keepdim=True))


def _windowed(
    query_QBHK: Tensor,
    key_TBHK: Tensor,
    value_TBHK: Tensor,
    bias_GQCH: Tensor,
    keys_GQC: Tensor,
    dropout: float,
) -> Tensor:
    """Return attention's mixed values, (Q, B, H, K); `keys_GQC` are the candidates' indices."""
    key_QCBHK, value_QCBHK = _gather(key_TBHK, keys_GQC), _gather(value_TBHK, keys_GQC)
    scores_QCBH = (query_QBHK.unsqueeze(1) * key_QCBHK).sum(dim=-1)
    pattern = (scores_QCBH + bias_GQCH.permute(1, 2, 0, 3)).softmax(dim=1)
    if dropout:
        pattern = nn.functional.dropout(pattern, dropout)
    return (pattern.unsqueeze(-1) * value_QCBHK).sum(dim=1)


def _gather(x_TBHK: Tensor, keys_GQC: Tensor) -> Tensor:
    """Return the keys or values of each query's candidates, (Q, C, B, H, K)."""
    if len(keys_GQC) == 1:
        # All lines have the same candidates, so whole tokens are copied: several times as fast.
        num_queries, num_candidates = keys_GQC.shape[1:]
        gathered = x_TBHK.index_select(0, keys_GQC.flatten())
        return gathered.view(num_queries, num_candidates, *x_TBHK.shape[1:])
    line = torch.arange(x_TBHK.shape[1], device=keys_GQC.device)
    return x_TBHK[keys_GQC.permute(1, 2, 0), line]
