"""Attention of a one-layer model in training, by the ids of the tokens.

If position schemes add biases to scores and nothing else, a token is its embedding alone before the
first layer. Queries, keys and values are then made once for each id of the vocabulary, instead of once
for each of thousands of tokens, and so are the scores of all pairs of ids:

    score of a query and a key   scores[id of the query, id of the key] + bias of the pair

Each query is paired with the few keys that its window holds. `attention_tables.py` generates by such
tables, made once in double precision; here they are made again in every step, and gradients pass
through them.
"""

import torch
from torch import Tensor

from abacist.models.block import Block
from abacist.models.coordinates import SchemeCoordinates
from abacist.models.views import View

LARGEST_VOCABULARY = 128
"""The table of scores grows with the square of the vocabulary."""


def resid_after_attention(
    block: Block, embedded_VD: Tensor, query_ids_QB: Tensor, key_ids_QCB: Tensor, view: View
) -> Tensor:
    """Return the residual stream with attention's output, (Q, B, D).

    Args:
        block: the only layer.
        embedded_VD: the residual stream before the layer, for every id.
        query_ids_QB: int64 ids of the queries.
        key_ids_QCB: int64 ids of the keys that each query is paired with.
        view: what is known of each pair.
    """
    attention = block.attention
    num_ids, (num_queries, num_keys, batch) = len(embedded_VD), key_ids_QCB.shape
    x_VD = block.attention_input(embedded_VD, None)
    query_VHK, (key_VHK, value_VHK) = (
        attention.queries(x_VD, None),
        attention.keys_values(x_VD, None),
    )
    scores_HVV = torch.bmm(query_VHK.transpose(0, 1), key_VHK.permute(1, 2, 0))
    pairs_QCB = query_ids_QB.unsqueeze(1) * num_ids + key_ids_QCB
    scores_VVH = scores_HVV.permute(1, 2, 0).contiguous()  # whole rows are selected
    scores = scores_VVH.flatten(0, 1).index_select(0, pairs_QCB.flatten())
    bias_QCGH = attention.score_bias(view).permute(1, 2, 0, 3)
    # Softmax along the last dimension takes several times as long as along one before it.
    pattern = (scores.view(*key_ids_QCB.shape, -1) + bias_QCGH).softmax(dim=1)
    heads, width = attention.num_heads, attention.head_width
    if num_ids <= num_keys * width:
        # How much attention each id gets: with few ids, one matrix product then mixes all values.
        if attention.output.bias is not None:
            embedded_VD = embedded_VD + attention.output.bias
        embedded = embedded_VD.index_select(0, query_ids_QB.flatten())
        queries = torch.arange(num_queries * batch).view(num_queries, 1, batch)
        slots_QCB = queries * num_ids + key_ids_QCB
        attended = pattern.new_zeros(len(embedded) * num_ids, heads)
        attended.index_add_(0, slots_QCB.flatten(), pattern.flatten(0, 2))
        output_HKD = attention.output.weight.t().view(heads, width, -1)
        mixed_HVD = torch.bmm(value_VHK.transpose(0, 1), output_HKD)
        mixed_VHD = mixed_HVD.transpose(0, 1).flatten(0, 1)
        resid = torch.addmm(embedded, attended.view(len(embedded), -1), mixed_VHD)
    else:
        embedded = embedded_VD.index_select(0, query_ids_QB.flatten())
        value_QCBHK = value_VHK.flatten(1).index_select(0, key_ids_QCB.flatten())
        value_QCBHK = value_QCBHK.view(*pattern.shape, width)
        z_QBHK = (pattern.unsqueeze(-1) * value_QCBHK).sum(dim=1)
        resid = embedded + attention.output(z_QBHK.flatten(2)).flatten(0, 1)
    return resid.view(num_queries, batch, -1)


def ids_of_keys(ids_BT: Tensor, keys_GQC: Tensor) -> Tensor:
    """Return the ids of the keys that each query is paired with, int64 (Q, C, B)."""
    _, num_queries, num_keys = keys_GQC.shape
    if len(keys_GQC) == 1:
        ids_TB = ids_BT.t().contiguous()
        return ids_TB.index_select(0, keys_GQC.flatten()).view(num_queries, num_keys, -1)
    ids_BQC = ids_BT.gather(1, keys_GQC.flatten(1)).view_as(keys_GQC)
    return ids_BQC.permute(1, 2, 0).contiguous()


def coordinates_of_wanted(
    tokens: SchemeCoordinates, first: int, wanted_BQ: Tensor
) -> tuple[SchemeCoordinates, SchemeCoordinates]:
    """Return the coordinates of the N wanted queries, (N, 1), and of all tokens of their lines, (N, T)."""
    line_N, query_N = wanted_BQ.nonzero().unbind(dim=1)
    query_N1 = (query_N + first).unsqueeze(1)
    every_token = SchemeCoordinates(
        tokens.index[line_N], [values[line_N] for values in tokens.values]
    )
    queries = SchemeCoordinates(
        every_token.index.gather(1, query_N1),
        [values.gather(1, query_N1) for values in every_token.values],
    )
    return queries, every_token


def only_wanted(view: View, wanted_BQ: Tensor) -> View:
    """Return the pairs of the N wanted queries, each as the only query of a line, (N, 1, C)."""

    def select(pairs: Tensor) -> Tensor:
        return pairs.expand(len(wanted_BQ), *pairs.shape[1:])[wanted_BQ].unsqueeze(1)

    assert view.keys is not None
    return View(select(view.keys), select(view.visible), [select(x) for x in view.bias_inputs])
