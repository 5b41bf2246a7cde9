"""The transformer: embed the tokens, run the layers (recurrently, in looped models), unembed.

>>> model = Transformer(ModelConfig(), vocabulary_size=14)
>>> logits = model(ids, coordinates, first=len_of_prompt - 1)   # answer tokens only

It is a causal decoder or a bidirectional encoder of the usual kind (arXiv 1706.03762, with GPT-2's
normalisation before each sublayer unless configured otherwise). Two things are less usual: tokens
carry several coordinates (`coordinates.py`), and the same layers can run several times, as in the
Universal Transformer (arXiv 1807.03819) and the looped models of Abacus (arXiv 2405.17399).
"""

from collections.abc import Iterator
from typing import Literal

import torch
from torch import Tensor, nn

from abacist.errors import ConfigurationError, ProblemError
from abacist.models.attention_by_id import (
    LARGEST_VOCABULARY,
    coordinates_of_wanted,
    ids_of_keys,
    only_wanted,
    resid_after_attention,
)
from abacist.models.block import MLP, Block, Injection, make_norm
from abacist.models.config import ModelConfig, PositionScheme
from abacist.models.coordinates import Coordinates, SchemeCoordinates, coordinates_by_scheme
from abacist.models.encodings import (
    LearnedEncoding,
    QueryKeyEncoding,
    make_encoding,
    rotation,
    select_rows,
)
from abacist.models.fused import FusedView
from abacist.models.hooks import ActivationHook, apply_hook, apply_norm, with_prefix
from abacist.models.views import (
    KeyTable,
    View,
    dense_view,
    first_windowed,
    only_visible,
    visibility,
    visible_view,
    windowed_view,
)

Path = Literal["auto", "dense", "windowed", "by-id", "fused"]
"""How attention is calculated. All paths give the same logits; `auto` takes the fastest."""

# For shorter lines, pairing all tokens is cheaper than finding the few inside a window.
_WINDOWED_FROM_TOKENS = 64
# Cost of a pair with a candidate key, relative to a pair of a dense view.
_COST_OF_CANDIDATE = 4
# For longer lines, the dense scores of a single line would take gigabytes.
LONGEST_DENSE = 8_192
# Standard deviation of an initial state of noise.
_STATE_INIT_STD = 0.02
# Narrower heads do not fill the tiles of the fused kernel.
_NARROWEST_FUSED = 16


class Transformer(nn.Module):
    """A decoder or an encoder over tokens with coordinates."""

    def __init__(self, config: ModelConfig, vocabulary_size: int) -> None:
        super().__init__()
        self.config = config
        self.embedding = nn.Embedding(vocabulary_size, config.width)
        all_heads = config.num_heads * config.width_of_head
        self.positions = nn.ModuleList(
            make_encoding(scheme, config.width if scheme.added_to == "input" else all_heads)
            for scheme in config.positions
            if scheme.adds == "vector"
        )
        for number, encoding, _ in self._vector_encodings():
            if isinstance(encoding, LearnedEncoding):
                encoding.number = number
        self.blocks = nn.ModuleList(Block(config) for _ in range(config.num_layers))
        self.embedding_norm = make_norm(config) if config.embedding_norm else nn.Identity()
        self.final_mlp = MLP(config) if config.final_mlp else nn.Identity()
        self.injection = Injection(config) if config.injection == "linear" else None
        self.final_norm = make_norm(config) if config.final_norm else nn.Identity()
        self.head = nn.Linear(config.width, vocabulary_size, bias="head" in config.biases)
        self.dropout = nn.Dropout(config.dropout_of("embedding"))
        if config.tied_head:
            self.head.weight = self.embedding.weight
        if config.init_std:
            self._draw_weights()
            return
        # In a tied head, rows of variance 1 would give logits of the order of sqrt(D).
        init_std = config.embedding_init_std or (config.width**-0.5 if config.tied_head else 1.0)
        if init_std != 1.0:  # torch's default
            nn.init.normal_(self.embedding.weight, std=init_std)

    def _draw_weights(self) -> None:
        """Draw all matrices and embeddings from N(0, `init_std`), and set biases to 0, as GPT-2 does."""
        config = self.config
        for name, module in self.named_modules():
            if isinstance(module, nn.Linear):
                std = config.init_std
                if config.scaled_residual_init and name.endswith(
                    (".attention.output", ".mlp.down")
                ):
                    std *= (2 * self.depth) ** -0.5
                nn.init.normal_(module.weight, std=std)
                if module.bias is not None:
                    nn.init.zeros_(module.bias)
            elif isinstance(module, LearnedEncoding):
                nn.init.normal_(module.rows.weight, std=module.scheme.init_std or config.init_std)
        # After the head, whose weight may be the same.
        std = config.embedding_init_std or config.init_std
        nn.init.normal_(self.embedding.weight, std=std)

    @property
    def schemes(self) -> tuple[PositionScheme, ...]:
        """The position schemes, in the order of the settings."""
        return self.config.positions

    @property
    def is_causal(self) -> bool:
        """Whether tokens see earlier tokens only (a decoder) instead of all (an encoder)."""
        return self.config.direction == "causal"

    @property
    def is_windowed(self) -> bool:
        """Whether a window bounds what a token sees, so cost is linear in the length of a line."""
        return first_windowed(self.schemes) is not None

    @property
    def device(self) -> torch.device:
        """The device of the weights, where ids and coordinates must be as well."""
        return self.embedding.weight.device

    @property
    def depth(self) -> int:
        """Number of layers that a token passes through: layers × recurrences."""
        return len(self.blocks) * self.config.recurrences

    @property
    def num_parameters(self) -> int:
        """Number of trained parameters; shared ones count once."""
        return sum(parameter.numel() for parameter in self.parameters())

    def forward(
        self,
        ids_BT: Tensor,
        coordinates: Coordinates,
        first: int = 0,
        generator: torch.Generator | None = None,
        path: Path = "auto",
        recurrences: int | None = None,
        num_detached: int = 0,
        hook: ActivationHook | None = None,
    ) -> Tensor:
        """Return the logits at tokens from `first` on, (B, T - first, V).

        For a decoder, position t holds the logits of token t + 1; for an encoder, those of the
        answer token at t. The last layer and the head are computed for these tokens only.

        Args:
            ids_BT: int token ids.
            coordinates: coordinates of all tokens, on the device of the model.
            first: index of the first token whose logits are wanted.
            generator: CPU generator of the random numbers of a training pass (offsets, subsets,
                initial states); None in evaluation.
            path: how attention is calculated; `by-id` needs a model that `reads_ids_alone`, and one
                recurrence without a hook.
            recurrences: how many times the layers run; None for the number in the settings.
            num_detached: number of recurrences at the start that pass no gradient on.
            hook: receives every activation and returns the one to continue with; needs the path
                `dense`.

        Raises `ConfigurationError` where `recurrences` is below 1, and `ProblemError` where a
        line is too long for this model.
        """
        recurrences = self.config.recurrences if recurrences is None else recurrences
        if recurrences < 1:
            raise ConfigurationError(f"recurrences must be 1 or more, got {recurrences}.")
        scheme_coordinates = self.coordinates_by_scheme(coordinates, ids_BT.shape[0], generator)
        may_be_by_id = path == "by-id" or (path == "auto" and torch.is_grad_enabled())
        if may_be_by_id and hook is None and recurrences == 1 and self.reads_ids_alone:
            return self.logits_by_id(ids_BT, scheme_coordinates, first)
        assert path != "by-id", "the path by-id needs a model that reads ids alone"
        embedded = self.embed(ids_BT, scheme_coordinates, hook)
        depth = recurrences * len(self.blocks)
        all_view, tail_view = self.views(scheme_coordinates, first, path, only_tail=depth == 1)
        query_key_encoding = self.query_key_encoding(scheme_coordinates, embedded.dtype)
        state = self.initial_state(embedded, generator)
        for recurrence in range(recurrences):
            with torch.set_grad_enabled(torch.is_grad_enabled() and recurrence >= num_detached):
                state, injected = self.begin_recurrence(state, embedded)
                for layer, block in enumerate(self.blocks):
                    number = recurrence * len(self.blocks) + layer
                    is_last = number == depth - 1
                    state = block(
                        state,
                        tail_view if is_last else all_view,
                        query_key_encoding,
                        injected,
                        first if is_last else 0,
                        with_prefix(hook, f"blocks.{number}"),
                    )
        return self.unembed(state, hook)

    def logits_by_id(
        self,
        ids_BT: Tensor,
        tokens: SchemeCoordinates,
        first: int,
        wanted_BQ: Tensor | None = None,
    ) -> Tensor:
        """Return the logits at tokens from `first` on by the path `by-id`, (B, T - first, V).

        Args:
            ids_BT: int token ids.
            tokens: coordinates of all tokens.
            first: index of the first token whose logits are wanted.
            wanted_BQ: which of these are wanted, bool (B, T - first), if lines differ in it. The
                result is then (N, 1, V), for N of them, line by line.
        """
        block = self.blocks[0]
        assert isinstance(block, Block)
        view = self._view_by_id(tokens, first, wanted_BQ)
        ids_BT, queries_QB = ids_BT.long(), ids_BT[:, first:].long().t()
        assert view.keys is not None
        if wanted_BQ is None:
            keys_QCB = ids_of_keys(ids_BT, view.keys)
        else:
            line_N1 = wanted_BQ.nonzero()[:, :1]
            keys_QCB = ids_BT[line_N1, view.keys.squeeze(1)].t().contiguous().unsqueeze(0)
            queries_QB = queries_QB.t()[wanted_BQ].unsqueeze(0)
        embedded_VD = self.embedding_norm(self.embedding.weight)
        resid = resid_after_attention(block, embedded_VD, queries_QB, keys_QCB, view)
        return self.unembed(block.after_attention(resid, None))

    def _view_by_id(self, tokens: SchemeCoordinates, first: int, wanted_BQ: Tensor | None) -> View:
        """Return the view of all queries from `first` on, or that of the N wanted ones, (N, 1, C)."""
        queries, keys = tokens[first:], tokens
        table = self._table_for_path(tokens, "auto")
        if table is None:
            if wanted_BQ is not None:
                # In lines of mixed lengths, most pairs of tokens are padding or belong to no wanted query.
                queries, keys = coordinates_of_wanted(tokens, first, wanted_BQ)
            return visible_view(self.schemes, queries, keys, self.is_causal)
        view = only_visible(windowed_view(self.schemes, queries, keys, table, self.is_causal))
        return view if wanted_BQ is None else only_visible(only_wanted(view, wanted_BQ))

    @property
    def reads_ids_alone(self) -> bool:
        """Whether a token's query, key and value depend on its id alone, so that `by-id` pays.

        On a GPU, gradients of tables would be added in any order, and bits would not repeat.
        """
        config = self.config
        return (
            self.is_windowed
            and self.depth == 1
            and config.injection == "none"
            and config.initial_state == "input"
            and not (config.length_scaling or config.dropout)
            and all(scheme.adds == "bias" for scheme in config.positions)
            and self.embedding.num_embeddings <= LARGEST_VOCABULARY
            and self.device.type == "cpu"
        )

    def coordinates_by_scheme(
        self, coordinates: Coordinates, batch: int = 1, generator: torch.Generator | None = None
    ) -> SchemeCoordinates:
        """Select the coordinates that this model's position schemes encode; see `coordinates.py`."""
        return coordinates_by_scheme(self.schemes, coordinates, batch, generator)

    def embed(
        self,
        ids_BT: Tensor,
        scheme_coordinates: SchemeCoordinates,
        hook: ActivationHook | None = None,
    ) -> Tensor:
        """Return the residual stream before the first layer, (T, B, D)."""
        resid = apply_hook(hook, "hook_embed", select_rows(self.embedding.weight, ids_BT.t()))
        for number, (encoding, scheme, values) in enumerate(self._vectors(scheme_coordinates)):
            if scheme.added_to == "input":
                vectors_TGD = encoding(values).transpose(0, 1).to(resid.dtype)
                resid = resid + apply_hook(hook, f"positions.{number}.hook_pos_embed", vectors_TGD)
        out: Tensor = self.dropout(self.embedding_norm(resid))
        return out

    def query_key_encoding(
        self, scheme_coordinates: SchemeCoordinates, dtype: torch.dtype
    ) -> QueryKeyEncoding | None:
        """Return the position encoding of queries and keys; None where no scheme encodes them."""
        heads = (self.config.num_heads, self.config.width_of_head)
        added = None
        for encoding, scheme, values in self._vectors(scheme_coordinates):
            if scheme.added_to == "queries-keys":
                vectors_TGHK = encoding(values).transpose(0, 1).unflatten(-1, heads).to(dtype)
                added = vectors_TGHK if added is None else added + vectors_TGHK
        rotary = [
            (scheme, values)
            for scheme, values in zip(self.schemes, scheme_coordinates.values, strict=True)
            if scheme.adds == "rotation"
        ]
        rotations = [
            rotation(scheme, values, heads[1] // len(rotary), dtype) for scheme, values in rotary
        ]
        return QueryKeyEncoding(added, rotations) if rotations or added is not None else None

    def initial_state(self, embedded_TBD: Tensor, generator: torch.Generator | None) -> Tensor:
        """Return the state before the first recurrence, (T, B, D).

        It is the embedded input or small noise, as configured; noise is 0 without a generator.
        """
        if self.config.initial_state == "input":
            return embedded_TBD
        if generator is None:
            return torch.zeros_like(embedded_TBD)
        device = embedded_TBD.device
        noise = torch.randn(
            embedded_TBD.shape, generator=_on_device(generator, device), device=device
        )
        return (noise * _STATE_INIT_STD).to(embedded_TBD)

    def begin_recurrence(
        self, state_TBD: Tensor, embedded_TBD: Tensor
    ) -> tuple[Tensor, Tensor | None]:
        """Return the state that a recurrence starts from, and what its sublayers add to their input.

        Both are (T, B, D); the second is None unless `injection` is `sublayers`.
        """
        kind = self.config.injection
        if kind == "add":
            return state_TBD + embedded_TBD, None
        if self.injection is not None:
            return self.injection(state_TBD, embedded_TBD), None
        return state_TBD, embedded_TBD if kind == "sublayers" else None

    def unembed(self, resid_TBD: Tensor, hook: ActivationHook | None = None) -> Tensor:
        """Return the logits, (B, T, V), of the residual stream after the last layer."""
        resid_TBD = self.final_mlp(resid_TBD)
        normed = apply_norm(self.final_norm, resid_TBD, with_prefix(hook, "ln_final"))
        # Classes come first in memory, so that the softmax of the loss runs along long vectors
        # instead of rows of a dozen numbers.
        flat_logits = self.head.weight @ normed.flatten(0, 1).t()  # (V, T · B)
        if self.head.bias is not None:
            flat_logits = flat_logits + self.head.bias.unsqueeze(1)
        logits_VTB: Tensor = flat_logits.view(-1, *normed.shape[:2])
        return logits_VTB.permute(2, 1, 0)

    def visibility(self, coordinates: Coordinates) -> list[Tensor]:
        """Return one tensor per layer of `depth`: which query sees which key, bool (G, T, T)."""
        scheme_coordinates = self.coordinates_by_scheme(coordinates)
        visible = visibility(self.schemes, scheme_coordinates, scheme_coordinates, self.is_causal)
        return [visible] * self.depth

    def key_table(self, scheme_coordinates: SchemeCoordinates) -> KeyTable | None:
        """Build the table that windowed views of these lines search; None without a window."""
        number = first_windowed(self.schemes)
        if number is None:
            return None
        is_token = scheme_coordinates.index >= 0
        return KeyTable(scheme_coordinates.values[number], is_token)

    def views(
        self, tokens: SchemeCoordinates, first: int, path: Path, only_tail: bool = False
    ) -> tuple[View | FusedView, View | FusedView]:
        """Return the view of all queries, and that of queries from `first` on, over all keys.

        With `only_tail` only the second one is needed, and it is returned twice.

        Raises `ProblemError` where a line is too long for attention without a window.
        """
        is_fused = path == "fused" or (path == "auto" and self._is_worth_fusing(tokens))
        table = None if is_fused else self._table_for_path(tokens, path)
        if not is_fused and table is None and tokens.num_tokens > LONGEST_DENSE:
            raise ProblemError(
                f"a line of {tokens.num_tokens:,} tokens is too long for a model without a window, "
                f"which pairs all tokens with all: at most {LONGEST_DENSE:,}. "
                "Type a shorter problem, or train with --model.positions place-relative."
            )

        def view(queries: SchemeCoordinates) -> View | FusedView:
            if is_fused:
                return FusedView(self.schemes, queries, tokens, self.is_causal)
            if table is not None:
                return windowed_view(self.schemes, queries, tokens, table, self.is_causal)
            return dense_view(self.schemes, queries, tokens, self.is_causal)

        tail_view = view(tokens[first:])
        return tail_view if only_tail or first == 0 else view(tokens), tail_view

    def _table_for_path(self, tokens: SchemeCoordinates, path: Path) -> KeyTable | None:
        """Build the table for a windowed view; None where the view shall be dense."""
        if path == "windowed":
            table = self.key_table(tokens)
            assert table is not None, "the windowed path needs a window"
            return table
        if path == "dense" or tokens.num_tokens < _WINDOWED_FROM_TOKENS:
            return None
        table = self.key_table(tokens)
        return table if table is not None and self._is_worth_finding(table, tokens) else None

    def _is_worth_fusing(self, tokens: SchemeCoordinates) -> bool:
        """Whether the fused kernel can run and pays: on a GPU, for heads that are wide enough."""
        config = self.config
        drops_weights = self.training and config.dropout_of("attention") > 0
        window_pays = self.is_windowed and tokens.num_tokens > LONGEST_DENSE
        return (
            tokens.index.is_cuda
            and config.width_of_head >= _NARROWEST_FUSED
            and not (drops_weights or window_pays or config.length_scaling)
        )

    def _is_worth_finding(self, table: KeyTable, tokens: SchemeCoordinates) -> bool:
        """Whether a window contains so few of a line's tokens that finding them pays."""
        number = first_windowed(self.schemes)
        window = None if number is None else self.schemes[number].window
        assert window is not None
        cost = table.num_candidates(*window) * _COST_OF_CANDIDATE
        return cost <= tokens.num_tokens or tokens.num_tokens > LONGEST_DENSE

    def _vectors(
        self, scheme_coordinates: SchemeCoordinates
    ) -> Iterator[tuple[nn.Module, PositionScheme, Tensor]]:
        """Yield each vector encoding with its scheme and its coordinates, int (G, T)."""
        for number, encoding, scheme in self._vector_encodings():
            # No token sees padding, but its coordinate must not be outside a learned table.
            padding = scheme_coordinates.index < 0
            values = torch.where(padding, 0, scheme_coordinates.values[number])
            yield encoding, scheme, values

    def _vector_encodings(self) -> Iterator[tuple[int, nn.Module, PositionScheme]]:
        """Yield each vector encoding with its scheme and the scheme's number in the settings."""
        encodings = iter(self.positions)
        for number, scheme in enumerate(self.schemes):
            if scheme.adds == "vector":
                yield number, next(encodings), scheme


def _on_device(generator: torch.Generator, device: torch.device) -> torch.Generator:
    """Return a generator on `device` whose state is a function of one on the CPU."""
    if device.type == "cpu":
        return generator
    seed = int(torch.randint(1 << 62, (), generator=generator))
    return torch.Generator(device).manual_seed(seed)
