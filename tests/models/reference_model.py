"""The whole model as a slow reference: one line, one token, one head, one pair at a time.

Reads its weights by name and shares no code with the model but the names of settings.
"""

import math
from dataclasses import dataclass

import torch
from formulas import alibi_slopes, clipped, fire, rotated, sinusoid, t5_bucket
from torch import Tensor

from abacist.models.config import ModelConfig, PositionScheme
from abacist.models.coordinates import Coordinates
from abacist.models.transformer import Transformer

EVERYWHERE = -2


@dataclass
class Line:
    """The coordinates of one line's tokens: their index, and the coordinate of every scheme."""

    index: list[int]
    values: list[list[int]]


@torch.no_grad()
def reference_logits(
    model: Transformer,
    ids_BT: Tensor,
    coordinates: Coordinates,
    recurrences: int | None = None,
    initial: Tensor | None = None,
) -> Tensor:
    """(B, T, V) in float64; rows of padding are 0. `initial` (T, B, D) replaces the first state."""
    slow = _Slow(model, model.config.recurrences if recurrences is None else recurrences)
    lines = []
    for number, ids in enumerate(ids_BT.tolist()):
        row = min(number, len(coordinates.index) - 1)
        values = [
            getattr(coordinates, scheme.coordinate)[row].tolist()
            for scheme in model.config.positions
        ]
        line = Line(coordinates.index[row].tolist(), values)
        state = None if initial is None else list(initial[:, number])
        lines.append(slow.logits(ids, line, state))
    return torch.stack(lines)


class _Slow:
    def __init__(self, model: Transformer, recurrences: int) -> None:
        self.config: ModelConfig = model.config
        self.weights = {name: tensor.double() for name, tensor in model.state_dict().items()}
        self.recurrences = recurrences

    def logits(self, ids: list[int], line: Line, initial: list[Tensor] | None) -> Tensor:
        config = self.config
        embedded = [self.embedding(token, line, t) for t, token in enumerate(ids)]
        state = embedded if initial is None else initial
        if initial is None and config.initial_state == "noise":
            state = [torch.zeros_like(x) for x in embedded]
        for _ in range(self.recurrences):
            injected = [torch.zeros_like(x) for x in embedded]
            if config.injection == "add":
                state = [x + e for x, e in zip(state, embedded, strict=True)]
            if config.injection == "linear":
                both = [torch.cat([x, e]) for x, e in zip(state, embedded, strict=True)]
                state = [self.linear("injection.mix", x) for x in both]
            if config.injection == "sublayers":
                injected = embedded
            for layer in range(config.num_layers):
                state = self.layer(f"blocks.{layer}", state, injected, line)
        rows = []
        for t, x in enumerate(state):
            x = self.mlp("final_mlp", x) if config.final_mlp else x
            normed = self.norm("final_norm", x) if config.final_norm else x
            logits = self.linear("head", normed)
            rows.append(logits if line.index[t] >= 0 else torch.zeros_like(logits))
        return torch.stack(rows)

    def linear(self, name: str, x: Tensor) -> Tensor:
        out = self.weights[f"{name}.weight"] @ x
        bias = self.weights.get(f"{name}.bias")
        return out if bias is None else out + bias

    def norm(self, name: str, x: Tensor) -> Tensor:
        weight = self.weights[f"{name}.weight"]
        if self.config.norm == "rms":
            return x / math.sqrt(float((x * x).mean()) + 1e-6) * weight
        centred = x - x.mean()
        variance = float((centred * centred).mean())
        return centred / math.sqrt(variance + 1e-5) * weight + self.weights[f"{name}.bias"]

    def embedding(self, token: int, line: Line, t: int) -> Tensor:
        x = self.weights["embedding.weight"][token]
        for vector, scheme in self.vectors(line, t, self.config.width):
            if scheme.added_to == "input":
                x = x + vector
        return self.norm("embedding_norm", x) if self.config.embedding_norm else x

    def vectors(self, line: Line, t: int, width: int) -> list[tuple[Tensor, PositionScheme]]:
        """The vectors that absolute schemes add at token t; a token without a coordinate counts as 0."""
        vectors, number = [], 0
        for scheme, values in zip(self.config.positions, line.values, strict=True):
            position = max(values[t], 0) if line.index[t] >= 0 else 0
            if scheme.encoding == "learned":
                table = self.weights[f"positions.{number}.rows.weight"]
                vectors.append((table[position], scheme))
            if scheme.encoding == "sinusoidal":
                vector = sinusoid(position, width, scheme.base)
                vectors.append((torch.tensor(vector, dtype=torch.float64), scheme))
            number += scheme.encoding in ("learned", "sinusoidal")
        return vectors

    def layer(self, name: str, state: list[Tensor], injected: list[Tensor], line: Line) -> list:
        pre = self.config.norm_order == "pre"

        def sublayer_input(norm: str, xs: list[Tensor]) -> list[Tensor]:
            normed = [self.norm(f"{name}.{norm}", x) for x in xs] if pre else xs
            return [x + e for x, e in zip(normed, injected, strict=True)]

        def added(norm: str, xs: list[Tensor], outs: list[Tensor]) -> list[Tensor]:
            sums = [x + out for x, out in zip(xs, outs, strict=True)]
            return sums if pre else [self.norm(f"{name}.{norm}", x) for x in sums]

        attended = self.attention(
            f"{name}.attention", sublayer_input("attention_norm", state), line
        )
        state = added("attention_norm", state, attended)
        mlp_out = [self.mlp(f"{name}.mlp", x) for x in sublayer_input("mlp_norm", state)]
        return added("mlp_norm", state, mlp_out)

    def mlp(self, name: str, x: Tensor) -> Tensor:
        def bend(number: float) -> float:
            if self.config.activation == "relu":
                return max(number, 0.0)
            if self.config.activation == "swiglu":
                return number / (1 + math.exp(-number))
            return number * 0.5 * (1 + math.erf(number / math.sqrt(2)))

        up = self.linear(f"{name}.up", x)
        hidden = torch.tensor([bend(number) for number in up.tolist()], dtype=torch.float64)
        if self.config.activation in ("geglu", "swiglu"):
            hidden = hidden * self.linear(f"{name}.gate", x)
        return self.linear(f"{name}.down", hidden)

    def attention(self, name: str, inputs: list[Tensor], line: Line) -> list[Tensor]:
        tokens, K = range(len(inputs)), self.config.width_of_head
        queries = [self.linear(f"{name}.query", x) for x in inputs]
        keys = [self.linear(f"{name}.key", x) for x in inputs]
        values = [self.linear(f"{name}.value", x) for x in inputs]
        heads: list[list[Tensor]] = [[] for _ in tokens]
        for head in range(self.config.num_heads):
            share = slice(head * K, (head + 1) * K)
            q = [self.encode(queries[t][share], share, line, t) for t in tokens]
            k = [self.encode(keys[t][share], share, line, t) for t in tokens]
            for t in tokens:
                seen = [other for other in tokens if self.sees(line, t, other)]
                sharpness = self.sharpness(name, head, len(seen))
                scores = [
                    float(q[t] @ k[other]) * sharpness + self.bias(name, head, line, t, other)
                    for other in seen
                ]
                largest = max(scores, default=0.0)
                powers = [math.exp(score - largest) for score in scores]
                mixed = torch.zeros(K, dtype=torch.float64)
                for power, other in zip(powers, seen, strict=True):
                    mixed = mixed + power / sum(powers) * values[other][share]
                heads[t].append(mixed)
        return [self.linear(f"{name}.output", torch.cat(heads[t])) for t in tokens]

    def encode(self, x: Tensor, share: slice, line: Line, t: int) -> Tensor:
        """One head's query or key with its position encoded."""
        inner = self.config.num_heads * self.config.width_of_head
        for vector, scheme in self.vectors(line, t, inner):
            if scheme.added_to == "queries-keys":
                x = x + vector[share]
        schemes = list(zip(self.config.positions, line.values, strict=True))
        turning = [(s, values) for s, values in schemes if s.encoding == "rotary"]
        numbers = x.tolist()
        for part, (scheme, positions) in enumerate(turning):
            width = len(numbers) // len(turning)
            own = slice(part * width, (part + 1) * width)
            numbers[own] = rotated(numbers[own], max(positions[t], 0), scheme.base)
        x = torch.tensor(numbers, dtype=torch.float64)
        if self.config.query_key_norm:
            x = x / math.sqrt(float(x @ x))
        return x

    def sharpness(self, name: str, head: int, num_seen: int) -> float:
        factor = self.config.width_of_head**-0.5
        if self.config.query_key_norm:
            factor = float(self.weights[f"{name}.scale"][head])
        if self.config.length_scaling:
            scale = float(self.weights[f"{name}.length_scale"][head])
            factor *= scale * math.log(max(num_seen, 2))
        return factor

    def sees(self, line: Line, query: int, key: int) -> bool:
        if line.index[key] < 0 or line.index[query] < 0:
            return False
        if self.config.direction == "causal" and line.index[key] > line.index[query]:
            return False
        for scheme, values in zip(self.config.positions, line.values, strict=True):
            if scheme.window is None or query == key:
                continue
            inside = scheme.window[0] <= values[key] - values[query] <= scheme.window[1]
            if scheme.coordinate != "index":
                inside = inside and values[query] >= 0 and values[key] >= 0
                inside = inside or values[key] == EVERYWHERE
            if not inside:
                return False
        return True

    def bias(self, name: str, head: int, line: Line, query: int, key: int) -> float:
        """The sum of the schemes' biases on one score."""
        total, number = 0.0, 0
        for scheme, values in zip(self.config.positions, line.values, strict=True):
            if scheme.encoding not in ("relative", "alibi", "fire"):
                continue
            total += self.one_bias(
                f"{name}.relative.{number}", scheme, head, values[query], values[key]
            )
            number += 1
        return total

    def one_bias(self, name: str, scheme: PositionScheme, head: int, query: int, key: int) -> float:
        apart = scheme.coordinate == "index" or (query >= 0 and key >= 0)
        distance = abs(key - query) if apart else 0
        if scheme.encoding == "alibi":
            slope = scheme.slope or alibi_slopes(self.config.num_heads)[head]
            return -slope * distance
        if scheme.encoding == "fire":
            of = {key: self.weights[f"{name}.{key}"] for key in ("scale", "threshold")}
            weights = self.weights
            biases = fire(
                distance,
                max(query, 0),
                abs(float(of["scale"])),
                abs(float(of["threshold"])),
                (weights[f"{name}.hidden.weight"][:, 0].tolist(),
                 weights[f"{name}.hidden.bias"].tolist()),
                (weights[f"{name}.output.weight"].tolist(),
                 weights[f"{name}.output.bias"].tolist()),
            )  # fmt: skip
            return biases[head]
        table = self.weights[f"{name}.table"]
        if not apart:
            return float(table[-1, head])
        if scheme.num_buckets:
            bidirectional = self.config.direction == "both" or scheme.coordinate != "index"
            row = t5_bucket(key - query, bidirectional, scheme.num_buckets, scheme.max_distance)
        else:
            low, high = scheme.window or (-scheme.max_distance, scheme.max_distance)
            row = clipped(key - query, low, high)
        return float(table[row, head])
