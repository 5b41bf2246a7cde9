"""Attention of a one-layer model by tables, for generation.

If position schemes encode only differences of coordinates, a token is its embedding and nothing else
before the first layer. Its query, key and value then depend on its id alone, so three tables replace all
matrix products of attention, and the cache of a line holds ids instead of keys and values:

    scores   of every pair of ids, the query's and the key's
    biases   of every combination of differences inside the windows
    mixed    what a value adds to the residual stream, for every id and head

The tables are made in double precision, so their numbers are those of the layer, rounded once.
"""

from copy import deepcopy
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from abacist.arrays import Integers
from abacist.models.block import Block
from abacist.models.config import PositionScheme
from abacist.models.coordinates import Coordinates
from abacist.models.encoding_kinds import ENCODINGS
from abacist.models.encodings import INVISIBLE, bias_input
from abacist.models.module_functions import logits_after_attention
from abacist.models.transformer import Transformer

_LARGEST_VOCABULARY = 512
"""The table of scores grows with the square of the vocabulary."""

_MOST_BIASES = 1_000_000
"""The table of biases grows with the product of the windows of all schemes."""

_MOST_BY_NUMPY = 8
"""Largest number of lines for which NumPy's cheaper calls outweigh torch's faster arithmetic."""

_ROWS_IN_CACHE = 1_024
"""Number of lines whose activations a CPU computes at once: few enough for its cache, and for the
memory allocator to hand out the same pages again instead of new ones."""

Floats = npt.NDArray[np.float32]


def suits_tables(model: Transformer) -> bool:
    """Whether a model has one layer that runs once, and encodes only differences inside windows."""
    config = model.config
    return (
        model.is_causal
        and model.depth == 1
        and config.injection == "none"
        and not config.length_scaling
        and model.embedding.num_embeddings <= _LARGEST_VOCABULARY
        and len(model.schemes) > 0
        and all(map(_is_windowed_bias, model.schemes))
        and BiasRows(model.schemes).invisible <= _MOST_BIASES
    )


def _is_windowed_bias(scheme: PositionScheme) -> bool:
    """Whether a scheme adds a bias that depends on the differences inside a window alone."""
    kind = ENCODINGS[scheme.encoding]
    adds_bias = (kind.adds, kind.depends_on) == ("bias", "differences")
    return adds_bias and scheme.window is not None


class AttentionTables:
    """The tables of one model, made from its present weights."""

    @torch.no_grad()
    def __init__(self, model: Transformer) -> None:
        """Compute the tables of a model for which `suits_tables` holds."""
        block = model.blocks[0]
        assert isinstance(block, Block)
        self.schemes = model.schemes
        self._device, self._is_on_cpu = model.device, model.device.type == "cpu"
        self._logits = logits_after_attention(model, block)
        device, dtype = model.device, model.embedding.weight.dtype
        self.vocabulary_size = model.embedding.num_embeddings
        attention = deepcopy(block.attention).cpu().double()
        attention_norm = deepcopy(block.attention_norm).cpu().double()
        embedding_norm = deepcopy(model.embedding_norm).cpu().double()
        embedded = embedding_norm(model.embedding.weight.cpu().double())
        x_V1D = (attention_norm(embedded) if block.is_pre_norm else embedded).unsqueeze(1)
        query, (key, value) = attention.queries(x_V1D, None), attention.keys_values(x_V1D, None)
        output_HKD = attention.output.weight.t().reshape(*value.shape[2:], -1)
        if attention.output.bias is not None:
            embedded = embedded + attention.output.bias

        def table(values: Tensor) -> Tensor:
            # Selecting rows of a table that is not contiguous takes ten times as long.
            return values.flatten(0, -2).to(device, dtype).contiguous()

        self.scores = table(torch.einsum("qbhk,tbhk->qth", query, key))
        """(V · V, H): row V · query + key holds the scaled products of two ids."""
        self.mixed = table(torch.einsum("tbhk,hkd->thd", value, output_HKD))
        """(V · H, D): a head's value of an id, multiplied by the output matrix."""
        self.embedded = table(embedded)
        """(V, D): the residual stream before the layer, plus the bias of attention's output."""
        self.rows = BiasRows(model.schemes)
        self.biases = table(self.rows.biases(attention.relative))
        """(rows, H): the sum of all schemes' biases for each row of `BiasRows`."""
        self._arrays = _Arrays.of(self) if self._is_on_cpu and dtype == torch.float32 else None

    def logits(self, token_B: Integers, keys_CB: Integers, rows_CG: Integers) -> Tensor:
        """Return the logits of the tokens after `token_B`, (B, V).

        Args:
            token_B: ids of the queries.
            keys_CB: ids of the tokens that they see, themselves included.
            rows_CG: rows of `BiasRows` for each pair.
        """
        if len(token_B) <= _MOST_BY_NUMPY and self._arrays is not None:
            return self._logits(self._attend_by_numpy(self._arrays, token_B, keys_CB, rows_CG))
        (num_keys, batch), vocabulary_size = keys_CB.shape, self.vocabulary_size
        # Indices are calculated by NumPy, where a small operation costs a fraction of one in torch.
        pairs = token_B * vocabulary_size + keys_CB
        slots = np.arange(batch) * vocabulary_size + keys_CB
        scores = self.scores.index_select(0, self._indices(pairs)).view(num_keys, batch, -1)
        biases = self.biases.index_select(0, self._indices(rows_CG)).view(*rows_CG.shape, -1)
        # Softmax along the first dimension takes a fifth of the time of one along a later dimension.
        pattern = (scores + biases).softmax(dim=0)
        # How much attention each id gets; ids are few, and so one matrix product mixes all values.
        attended = pattern.new_zeros(batch * vocabulary_size, pattern.shape[2])
        attended.index_add_(0, self._indices(slots), pattern.flatten(0, 1))
        embedded = self.embedded.index_select(0, self._indices(token_B))
        resid = torch.addmm(embedded, attended.view(batch, -1), self.mixed)
        if batch <= _ROWS_IN_CACHE or not self._is_on_cpu:
            return self._logits(resid)
        return torch.cat([self._logits(rows) for rows in torch.split(resid, _ROWS_IN_CACHE)])

    # Scores of a training that diverged may be infinite; torch does not warn of them either.
    @np.errstate(all="ignore")
    def _attend_by_numpy(
        self, arrays: "_Arrays", token_B: Integers, keys_CB: Integers, rows_CG: Integers
    ) -> Tensor:
        """Return the residual stream after attention, (B, D), for a few lines.

        NumPy's exponentials are within 3 ulps, and certificates allow 4 (`certificates/rounding.py`).
        """
        pairs_CB = token_B * self.vocabulary_size + keys_CB
        scores_CBH = arrays.scores.take(pairs_CB, axis=0) + arrays.biases.take(rows_CG, axis=0)
        pattern_CBH = np.exp(scores_CBH - np.maximum.reduce(scores_CBH))
        pattern_CBH /= np.add.reduce(pattern_CBH)
        batch = len(token_B)
        values_BHD = arrays.mixed.take(keys_CB.T, axis=0).reshape(batch, -1, arrays.mixed.shape[2])
        pattern_BH = pattern_CBH.transpose(1, 0, 2).reshape(batch, 1, -1)
        attended_BD = (pattern_BH @ values_BHD)[:, 0]
        return torch.from_numpy(arrays.embedded.take(token_B, axis=0) + attended_BD)

    def _indices(self, array: Integers) -> Tensor:
        indices = torch.from_numpy(array.reshape(-1))
        return indices if self._is_on_cpu else indices.to(self._device)


@dataclass(frozen=True)
class _Arrays:
    """The tables for NumPy, which share their memory."""

    scores: Floats
    mixed: Floats
    """(V, H, D)"""
    embedded: Floats
    biases: Floats

    @staticmethod
    def of(tables: AttentionTables) -> "_Arrays":
        mixed = tables.mixed.view(tables.vocabulary_size, -1, tables.mixed.shape[1])
        tensors = (tables.scores, mixed, tables.embedded, tables.biases)
        return _Arrays(*(tensor.detach().numpy() for tensor in tensors))


class BiasRows:
    """Numbers the combinations of differences that a query and a key can have inside all windows.

    A scheme has a row for each difference and one for pairs in which a token has no coordinate. All
    combinations of several schemes follow each other, and the last row belongs to invisible pairs.
    """

    def __init__(self, schemes: tuple[PositionScheme, ...]) -> None:
        self._schemes = schemes
        self._windows = [scheme.window for scheme in schemes if scheme.window is not None]
        counts = [high - low + 2 for low, high in self._windows]
        self.invisible = int(np.prod(counts))
        """The row of pairs that must not attend."""
        strides = [int(np.prod(counts[number + 1 :])) for number in range(len(counts))]
        self._windows_strides = [
            (low, high - low + 1, stride)
            for (low, high), stride in zip(self._windows, strides, strict=True)
        ]

    def biases(self, modules: nn.ModuleList) -> Tensor:
        """Return the sum of the biases of all schemes for each row, (rows, H)."""
        total = torch.zeros(1, 1)
        for scheme, module, (low, high) in zip(self._schemes, modules, self._windows, strict=True):
            # A query at a place from which every difference leads to a place, and one without a place.
            query = torch.tensor([-low] * (high - low + 1) + [Coordinates.NO_PLACE])
            key = torch.tensor([*range(high - low + 1), Coordinates.NO_PLACE])
            bias_RH = module(bias_input(scheme, query, key))
            total = (total.unsqueeze(1) + bias_RH).flatten(0, 1)
        return torch.cat([total, torch.full_like(total[:1], INVISIBLE)])

    def of_pair(self, query: tuple[int, ...], key: tuple[int, ...]) -> int:
        """Return the row of a query and a key that it sees, from the coordinate of every scheme."""
        row = 0
        for (low, num_differences, stride), q, k in zip(
            self._windows_strides, query, key, strict=True
        ):
            row += stride * (k - q - low if q >= 0 and k >= 0 else num_differences)
        return row

    def of_lines(self, query: list[Integers], key: list[Integers]) -> Integers:
        """Return the rows of the last token of every line and of all tokens up to it, (G, T).

        Args:
            query: the coordinate of the last token for every scheme, (G,).
            key: the coordinates of all tokens, the last one included, (G, T).
        """
        row, visible = np.zeros_like(key[0]), np.ones_like(key[0], dtype=bool)
        for (low, num_differences, stride), query_G, key_GT in zip(
            self._windows_strides, query, key, strict=True
        ):
            query_G1 = query_G[:, None]
            difference = key_GT - (query_G1 + low)
            inside = (difference >= 0) & (difference < num_differences)
            inside &= (query_G1 >= 0) & (key_GT >= 0)
            row += stride * np.where(inside, difference, num_differences)
            visible &= inside | (key_GT == Coordinates.EVERYWHERE)
        # A token always sees itself.
        visible[:, -1] = True
        return np.where(visible, row, self.invisible)
