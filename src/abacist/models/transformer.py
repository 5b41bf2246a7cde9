"""The transformer: embed, apply the layers, perhaps again and again, read off the next token.

>>> model = Transformer(ModelConfig(), vocabulary_size=14)
>>> logits = model(ids, coordinates, first=len_of_prompt - 1)   # answer tokens only
"""

from collections.abc import Iterator
from typing import Literal

import torch
from torch import Tensor, nn

from abacist.errors import ConfigurationError, ProblemError
from abacist.models.block import MLP, Block, Injection, make_norm
from abacist.models.config import ABSOLUTE, ModelConfig, PositionScheme
from abacist.models.coordinates import Coordinates, SchemeCoordinates, scheme_coordinates
from abacist.models.encodings import QueryKeyPositions, make_vectors, rotation, select_rows
from abacist.models.fused import FusedView
from abacist.models.hooks import ActivationHook, hooked, hooked_norm, within
from abacist.models.views import ColumnTable, View, dense_view, window_number, windowed_view

Path = Literal["auto", "dense", "windowed", "fused"]
"""How attention is calculated; all give the same. `auto` takes what is fastest."""

# Below this many tokens, pairing all with all is cheaper than finding the window's few.
_WINDOWED_FROM_TOKENS = 64
# A pair that has to be found costs as much as so many of those that all stand side by side.
_WORTH_OF_A_SLOT = 4
# Beyond this many, the scores of one line alone would take gigabytes.
_LONGEST_DENSE = 8_192
_NOISE = 0.02
# Narrower heads do not fill the tiles of the fused kernel.
_NARROWEST_FUSED = 16


class Transformer(nn.Module):
    """A decoder or an encoder over tokens with coordinates."""

    def __init__(self, config: ModelConfig, vocabulary_size: int) -> None:
        super().__init__()
        self.config = config
        self.embedding = nn.Embedding(vocabulary_size, config.width)
        inner = config.num_heads * config.width_of_head
        self.positions = nn.ModuleList(
            make_vectors(scheme, config.width if scheme.added_to == "input" else inner)
            for scheme in config.positions
            if scheme.encoding in ABSOLUTE
        )
        self.blocks = nn.ModuleList(Block(config) for _ in range(config.num_layers))
        self.embedding_norm = make_norm(config) if config.embedding_norm else nn.Identity()
        self.final_mlp = MLP(config) if config.final_mlp else nn.Identity()
        self.injection = Injection(config) if config.injection == "linear" else None
        self.final_norm = make_norm(config) if config.final_norm else nn.Identity()
        self.head = nn.Linear(config.width, vocabulary_size, bias="head" in config.biases)
        self.dropout = nn.Dropout(config.dropout_of("embedding"))
        if config.tied_head:
            self.head.weight = self.embedding.weight
        # As a head, rows of variance 1 would make logits of the size of the root of the width.
        init_std = config.embedding_init_std or (config.width**-0.5 if config.tied_head else 1.0)
        if init_std != 1.0:  # which torch draws by itself
            nn.init.normal_(self.embedding.weight, std=init_std)

    @property
    def schemes(self) -> tuple[PositionScheme, ...]:
        return self.config.positions

    @property
    def is_causal(self) -> bool:
        return self.config.direction == "causal"

    @property
    def is_windowed(self) -> bool:
        """Whether a window bounds what a token sees, so that cost grows with length, not its square."""
        return window_number(self.schemes) is not None

    @property
    def device(self) -> torch.device:
        """Where the weights are, and ids and coordinates must be."""
        return self.embedding.weight.device

    @property
    def depth(self) -> int:
        """Layers that a token passes through: those there are, times how often they are run."""
        return len(self.blocks) * self.config.recurrences

    @property
    def num_parameters(self) -> int:
        """Trained numbers, shared ones counted once."""
        return sum(parameter.numel() for parameter in self.parameters())

    def forward(
        self,
        ids_BT: Tensor,
        coordinates: Coordinates,
        first: int = 0,
        generator: torch.Generator | None = None,
        path: Path = "auto",
        recurrences: int | None = None,
        detached: int = 0,
        hook: ActivationHook | None = None,
    ) -> Tensor:
        """Logits at each of tokens `first` … T, (B, T - first, V).

        A decoder's speak of the token that follows, an encoder's of the answer written there. The
        last layer and the head are computed for those tokens only. `generator` draws what training
        leaves to chance: random offsets, subsets and initial states. `recurrences` overrides how
        often the layers are run; the first `detached` of them pass no gradient on. A `hook` is shown
        every activation and may replace it; it needs the path `dense`.
        """
        where = self.place(coordinates, len(ids_BT), generator)
        embedded = self.embed(ids_BT, where, hook)
        recurrences = self.config.recurrences if recurrences is None else recurrences
        if recurrences < 1:
            raise ConfigurationError(f"recurrences must be 1 or more, got {recurrences}.")
        whole, tail = self.views(where, first, path, only_tail=recurrences * len(self.blocks) == 1)
        query_key_positions = self.query_key_positions(where, embedded.dtype)
        state = self.initial_state(embedded, generator)
        for round in range(recurrences):
            with torch.set_grad_enabled(torch.is_grad_enabled() and round >= detached):
                state, injected = self.begin_recurrence(state, embedded)
                for layer, block in enumerate(self.blocks):
                    last = round == recurrences - 1 and layer == len(self.blocks) - 1
                    inner = within(hook, f"blocks.{round * len(self.blocks) + layer}")
                    state = (
                        block(state, tail, query_key_positions, injected, first, inner)
                        if last
                        else block(state, whole, query_key_positions, injected, hook=inner)
                    )
        return self.unembed(state, hook)

    def place(
        self, coordinates: Coordinates, batch: int = 1, generator: torch.Generator | None = None
    ) -> SchemeCoordinates:
        """The coordinates as this model's position schemes see them."""
        return scheme_coordinates(self.schemes, coordinates, batch, generator)

    def embed(
        self, ids_BT: Tensor, where: SchemeCoordinates, hook: ActivationHook | None = None
    ) -> Tensor:
        """The residual stream before the first layer, (T, B, D)."""
        resid = hooked(hook, "hook_embed", select_rows(self.embedding.weight, ids_BT.t()))
        for number, (encoding, scheme, values) in enumerate(self._vectors(where)):
            if scheme.added_to == "input":
                # What stands at padding is seen by nobody and must not fall off a table.
                values = torch.where(where.index < 0, 0, values)
                vectors = encoding(values).transpose(0, 1).to(resid.dtype)
                resid = resid + hooked(hook, f"positions.{number}.hook_pos_embed", vectors)
        out: Tensor = self.dropout(self.embedding_norm(resid))
        return out

    def query_key_positions(
        self, where: SchemeCoordinates, dtype: torch.dtype
    ) -> QueryKeyPositions | None:
        """What queries and keys are told in every layer; None where that is nothing."""
        heads = (self.config.num_heads, self.config.width_of_head)
        added = None
        for encoding, scheme, values in self._vectors(where):
            if scheme.added_to == "queries-keys":
                values = torch.where(where.index < 0, 0, values)
                vectors = encoding(values).transpose(0, 1).unflatten(-1, heads).to(dtype)
                added = vectors if added is None else added + vectors
        turning = [
            (scheme, values)
            for scheme, values in zip(self.schemes, where.values, strict=True)
            if scheme.encoding == "rotary"
        ]
        rotations = [
            rotation(scheme, values, heads[1] // len(turning), dtype) for scheme, values in turning
        ]
        return QueryKeyPositions(added, rotations) if rotations or added is not None else None

    def initial_state(self, embedded: Tensor, generator: torch.Generator | None) -> Tensor:
        """What the first recurrence starts from, (T, B, D)."""
        if self.config.initial_state == "input":
            return embedded
        if generator is None:
            return torch.zeros_like(embedded)
        noise = torch.randn(
            embedded.shape, generator=_on_device(generator, embedded.device), device=embedded.device
        )
        return (noise * _NOISE).to(embedded)

    def begin_recurrence(self, state: Tensor, embedded: Tensor) -> tuple[Tensor, Tensor | None]:
        """The state a recurrence starts with, and what is added within its layers."""
        kind = self.config.injection
        if kind == "add":
            return state + embedded, None
        if self.injection is not None:
            return self.injection(state, embedded), None
        return state, embedded if kind == "sublayers" else None

    def unembed(self, resid_TBD: Tensor, hook: ActivationHook | None = None) -> Tensor:
        """Logits (B, T, V) from the residual stream after the last layer."""
        resid_TBD = self.final_mlp(resid_TBD)
        normed = hooked_norm(self.final_norm, resid_TBD, within(hook, "ln_final"))
        # Stored class by class, so that the softmax of the loss runs along whole vectors
        # instead of rows of a dozen numbers.
        logits_VN = self.head.weight @ normed.flatten(0, 1).t()
        if self.head.bias is not None:
            logits_VN = logits_VN + self.head.bias.unsqueeze(1)
        logits: Tensor = logits_VN.view(-1, *normed.shape[:2]).permute(2, 1, 0)
        return logits

    def visibility(self, coordinates: Coordinates) -> list[Tensor]:
        """Which token sees which in each layer: bool (G, T, T), query by key, for all of `depth`."""
        where = self.place(coordinates)
        visible = dense_view(self.schemes, where, where, self.is_causal).visible
        return [visible] * self.depth

    def column_table(self, where: SchemeCoordinates, spare_rows: int = 0) -> ColumnTable | None:
        """What windowed views of these lines are found with; None for a model without a window."""
        number = window_number(self.schemes)
        if number is None:
            return None
        return ColumnTable(where.values[number], where.index >= 0, spare_rows)

    def views(
        self, where: SchemeCoordinates, first: int, path: Path, only_tail: bool = False
    ) -> tuple[View | FusedView, View | FusedView]:
        """The views of all queries and of those from `first` on; the second twice if it alone is used."""
        if path == "fused" or (path == "auto" and self._is_worth_fusing(where)):
            last = FusedView(self.schemes, where[first:], where, self.is_causal)
            whole = FusedView(self.schemes, where, where, self.is_causal)
            return last if only_tail else whole, last
        table = None
        if path == "windowed" or (path == "auto" and where.num_tokens >= _WINDOWED_FROM_TOKENS):
            table = self.column_table(where)
            assert path == "auto" or table is not None, "a windowed path needs a window"
        if path == "auto" and table is not None and not self._is_worth_finding(table, where):
            table = None
        tail = where[first:]
        if table is None:
            if where.num_tokens > _LONGEST_DENSE:
                raise ProblemError(
                    f"a line of {where.num_tokens:,} tokens is too long for a model without "
                    f"a window, which pairs all tokens with all: at most {_LONGEST_DENSE:,}. "
                    "Type a shorter problem, or train with --model.positions place-relative."
                )
            view = dense_view(self.schemes, tail, where, self.is_causal)
            return view if only_tail else dense_view(
                self.schemes, where, where, self.is_causal
            ), view
        view = windowed_view(self.schemes, tail, where, table, self.is_causal)
        if only_tail:
            return view, view
        return windowed_view(self.schemes, where, where, table, self.is_causal), view

    def _is_worth_fusing(self, where: SchemeCoordinates) -> bool:
        """Whether the fused kernel is there and has a use: on a GPU, for heads wide enough for it."""
        config = self.config
        dropping = self.training and config.dropout_of("attention") > 0
        window_pays = self.is_windowed and where.num_tokens > _LONGEST_DENSE
        return (
            where.index.is_cuda
            and config.width_of_head >= _NARROWEST_FUSED
            and not (dropping or window_pays or config.length_scaling)
        )

    def _is_worth_finding(self, table: ColumnTable, where: SchemeCoordinates) -> bool:
        """Whether a window holds so few of a line's tokens that looking them up pays."""
        number = window_number(self.schemes)
        window = None if number is None else self.schemes[number].window
        assert window is not None
        slots = table.num_slots(*window)
        return slots * _WORTH_OF_A_SLOT <= where.num_tokens or where.num_tokens > _LONGEST_DENSE

    def _vectors(
        self, where: SchemeCoordinates
    ) -> Iterator[tuple[nn.Module, PositionScheme, Tensor]]:
        """The encodings that have a vector for each coordinate, with their schemes and values."""
        absolute = [
            (scheme, values)
            for scheme, values in zip(self.schemes, where.values, strict=True)
            if scheme.encoding in ABSOLUTE
        ]
        for encoding, (scheme, values) in zip(self.positions, absolute, strict=True):
            yield encoding, scheme, values


def _on_device(generator: torch.Generator, device: torch.device) -> torch.Generator:
    """A generator for a device, a function of one for the CPU."""
    if device.type == "cpu":
        return generator
    seed = int(torch.randint(1 << 62, (), generator=generator))
    return torch.Generator(device).manual_seed(seed)
