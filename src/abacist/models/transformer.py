"""The transformer: embed, apply the layers, read off the next token.

>>> model = Transformer(ModelConfig(), vocabulary_size=14)
>>> logits = model(ids, coordinates, first=len_of_prompt - 1)   # answer tokens only
"""

from typing import Literal

import torch
from torch import Tensor, nn

from abacist.errors import ProblemError
from abacist.models.block import Block, make_norm
from abacist.models.config import ModelConfig, PositionScheme
from abacist.models.coordinates import Coordinates
from abacist.models.encodings import LearnedEncoding, raw, select_rows
from abacist.models.views import ColumnTable, View, dense_view, window_scheme, windowed_view

Path = Literal["auto", "dense", "windowed"]

# Below this many tokens, pairing all with all is cheaper than finding the window's few.
_WINDOWED_FROM_TOKENS = 64
# Beyond this many, the scores of one line alone would take gigabytes.
_LONGEST_DENSE = 8_192


class Transformer(nn.Module):
    """A causal decoder over tokens with coordinates."""

    def __init__(self, config: ModelConfig, vocabulary_size: int) -> None:
        super().__init__()
        self.config = config
        self.embedding = nn.Embedding(vocabulary_size, config.width)
        self.positions = nn.ModuleList(
            LearnedEncoding(scheme, config.width)
            for scheme in config.positions
            if scheme.encoding == "learned"
        )
        self.blocks = nn.ModuleList(Block(config) for _ in range(config.num_layers))
        self.final_norm = make_norm(config)
        self.head = nn.Linear(config.width, vocabulary_size, bias=False)
        if config.tied_head:
            self.head.weight = self.embedding.weight
            # As a head, rows of variance 1 would make logits of the size of the root of the width.
            nn.init.normal_(self.embedding.weight, std=config.width**-0.5)

    @property
    def relative_schemes(self) -> list[PositionScheme]:
        return [s for s in self.config.positions if s.encoding == "relative"]

    @property
    def is_windowed(self) -> bool:
        """Whether a window bounds what a token sees, so that cost grows with length, not its square."""
        return window_scheme(self.relative_schemes) is not None

    @property
    def num_parameters(self) -> int:
        """Trained numbers, shared ones counted once."""
        return sum(parameter.numel() for parameter in self.parameters())

    def forward(
        self,
        ids_BT: Tensor,
        coordinates: Coordinates,
        first: int = 0,
        offset_seed: torch.Generator | None = None,
        path: Path = "auto",
    ) -> Tensor:
        """Logits of the token after each of tokens `first` … T, (B, T - first, V).

        The last layer and the head are computed for those tokens only. `offset_seed` draws the
        random offsets of learned encodings and is for training alone.
        """
        resid = self.embed(ids_BT, coordinates, offset_seed)
        last = len(self.blocks) - 1
        whole, tail = self.views(coordinates, first, path)
        for layer, block in enumerate(self.blocks):
            resid = block(resid, tail, first) if layer == last else block(resid, whole)
        return self.unembed(resid)

    def embed(
        self,
        ids_BT: Tensor,
        coordinates: Coordinates,
        offset_seed: torch.Generator | None = None,
    ) -> Tensor:
        """The residual stream before the first layer, (T, B, D)."""
        resid = select_rows(self.embedding.weight, ids_BT.t())
        for encoding in self.positions:
            resid = resid + encoding(coordinates, ids_BT.shape[0], offset_seed).transpose(0, 1)
        return resid

    def unembed(self, resid_TBD: Tensor) -> Tensor:
        """Logits (B, T, V) from the residual stream after the last layer."""
        normed = self.final_norm(resid_TBD)
        # Stored class by class, so that the softmax of the loss runs along whole vectors
        # instead of rows of a dozen numbers.
        logits_VN = self.head.weight @ normed.flatten(0, 1).t()
        logits: Tensor = logits_VN.view(-1, *normed.shape[:2]).permute(2, 1, 0)
        return logits

    def visibility(self, coordinates: Coordinates) -> list[Tensor]:
        """Which token sees which in each layer: L tensors, bool (G, T, T), query by key."""
        visible = dense_view(self.relative_schemes, coordinates, coordinates).visible
        return [visible] * len(self.blocks)

    def column_table(self, coordinates: Coordinates, spare_rows: int = 0) -> ColumnTable | None:
        """What windowed views of these lines are found with; None for a model without a window."""
        window = window_scheme(self.relative_schemes)
        if window is None:
            return None
        return ColumnTable(raw(window, coordinates), coordinates.index >= 0, spare_rows)

    def views(self, coordinates: Coordinates, first: int, path: Path) -> tuple[View, View]:
        """The views of all queries and of those from `first` on."""
        schemes = self.relative_schemes
        if path == "auto":
            long = coordinates.num_tokens >= _WINDOWED_FROM_TOKENS
            path = "windowed" if long and self.is_windowed else "dense"
        tail = coordinates[first:]
        if path == "dense":
            if coordinates.num_tokens > _LONGEST_DENSE:
                raise ProblemError(
                    f"a line of {coordinates.num_tokens:,} tokens is too long for a model without "
                    f"a window, which pairs all tokens with all: at most {_LONGEST_DENSE:,}. "
                    "Type a shorter problem, or train with --model.positions place-relative."
                )
            view = dense_view(schemes, tail, coordinates)
            whole = dense_view(schemes, coordinates, coordinates) if len(self.blocks) > 1 else view
            return whole, view
        table = self.column_table(coordinates)
        assert table is not None, "a windowed path needs a window"
        view = windowed_view(schemes, tail, coordinates, table)
        if len(self.blocks) == 1:
            return view, view
        return windowed_view(schemes, coordinates, coordinates, table), view
