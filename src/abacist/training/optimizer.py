"""The optimiser: AdamW, or AdamW and Muon, over all parameters as one vector.

A small model has a score of small tensors, and a step that visits each of them spends more time
on visiting than on arithmetic. Laid side by side in one vector they are clipped, decayed and
updated by a handful of operations, element by element the same.
"""

import typing
from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn

from abacist.models.transformer import Transformer
from abacist.training.config import TrainingConfig

_MOMENTS = ("step", "exp_avg", "exp_avg_sq")
"""What AdamW remembers between steps."""

_FIRST_SCALE = 2.0**16
_STEPS_BEFORE_DOUBLING = 2_000


class Optimizer:
    """AdamW (arXiv 1711.05101) over one vector of all parameters, with clipping.

    The model's parameters become views of the vector, and so do their gradients; the model is
    used as before. With Muon (arXiv 2502.16982), the matrices inside the layers are updated by
    it and AdamW has the rest. On request a running mean of the weights is kept beside them.
    """

    def __init__(self, model: Transformer, config: TrainingConfig) -> None:
        self.clip_norm, self.ema_decay = config.clip_norm, config.ema_decay
        matrices = _matrices(model) if config.optimizer == "muon" else []
        chosen = {id(matrix) for matrix in matrices}
        others = [parameter for parameter in model.parameters() if id(parameter) not in chosen]
        with torch.no_grad():
            parameters = [*others, *matrices]
            self.flat = torch.cat([parameter.flatten() for parameter in parameters])
            self.gradient = torch.zeros_like(self.flat)
            sizes = [parameter.numel() for parameter in parameters]
            for parameter, weights, gradient in zip(
                parameters,
                torch.split(self.flat, sizes),
                torch.split(self.gradient, sizes),
                strict=True,
            ):
                parameter.data = weights.view_as(parameter)
                parameter.grad = gradient.view_as(parameter)
        count = sum(parameter.numel() for parameter in others)
        self.others = nn.Parameter(self.flat[:count])
        self.others.grad = self.gradient[:count]
        self.adamw = torch.optim.AdamW(
            [self.others],
            lr=config.learning_rate,
            betas=(config.beta1, config.beta2),
            weight_decay=config.weight_decay,
            fused=True,
        )
        self.muon = None
        if matrices:
            # Scaled to the size of AdamW's steps, so that one rate serves both.
            self.muon = torch.optim.Muon(
                matrices,
                lr=config.learning_rate,
                weight_decay=config.weight_decay,
                momentum=config.momentum,
                adjust_lr_fn="match_rms_adamw",
            )
        self.average = self.flat.clone() if config.ema_decay else None
        self.num_averaged = 0
        self.loss_scale = LossScale() if config.precision == "float16" else None

    def zero_gradient(self) -> None:
        """Forget the last step's gradient."""
        self.gradient.zero_()

    def step(self, learning_rate: float) -> bool:
        """Clip, then update; False, and nothing done, where the gradient is not finite."""
        if self.loss_scale is not None:
            self.gradient.mul_(1 / self.loss_scale.value)
        norm = self.gradient.norm()
        if not torch.isfinite(norm):
            # Half precision overflows now and then: the step is left out, the scale lowered.
            return self.loss_scale is not None and self.loss_scale.lower()
        if self.clip_norm is not None:
            self.gradient.mul_((self.clip_norm / (norm + 1e-6)).clamp(max=1.0))
        for optimizer in filter(None, (self.adamw, self.muon)):
            optimizer.param_groups[0]["lr"] = learning_rate
            optimizer.step()
        if self.average is not None:
            # The mean of few steps must not remember the weights training began with.
            self.num_averaged += 1
            decay = min(self.ema_decay, self.num_averaged / (self.num_averaged + 9))
            self.average.lerp_(self.flat, 1 - decay)
        if self.loss_scale is not None:
            self.loss_scale.succeed()
        return True

    @contextmanager
    def averaged(self) -> Iterator[None]:
        """Within, the model has the mean weights, where a mean is kept."""
        if self.average is None:
            yield
            return
        present = self.flat.clone()
        self.flat.copy_(self.average)
        try:
            yield
        finally:
            self.flat.copy_(present)

    def adopt_average(self) -> None:
        """Leave the model with the mean weights, where a mean is kept."""
        if self.average is not None:
            self.flat.copy_(self.average)

    def state(self) -> dict[str, Tensor]:
        """What must be kept to go on later, beside the (mean) weights."""
        kept = {
            name: tensor
            for name, tensor in self.adamw.state[self.others].items()
            if name in _MOMENTS
        }
        if self.muon is not None:
            for number, matrix in enumerate(self.muon.param_groups[0]["params"]):
                kept[f"muon.{number}"] = self.muon.state[matrix]["momentum_buffer"]
        if self.average is not None:
            kept |= {"weights": self.flat, "num_averaged": torch.tensor(self.num_averaged)}
        if self.loss_scale is not None:
            kept["loss_scale"] = self.loss_scale.state()
        return {name: tensor.cpu().clone() for name, tensor in kept.items()}

    def restore(self, state: dict[str, Tensor]) -> None:
        """Go on with a state that was kept; the model has the (mean) weights already."""
        device = self.flat.device
        self.adamw.state[self.others] = {
            # The fused kernel wants its step count beside the weights.
            name: state[name].to(device, copy=True)
            for name in _MOMENTS
        }
        if self.muon is not None:
            for number, matrix in enumerate(self.muon.param_groups[0]["params"]):
                buffer = state[f"muon.{number}"].to(device, copy=True)
                self.muon.state[matrix] = {"momentum_buffer": buffer}
        if self.average is not None:
            self.average.copy_(self.flat)
            self.flat.copy_(state["weights"])
            self.num_averaged = int(state["num_averaged"])
        if self.loss_scale is not None:
            self.loss_scale.restore(state["loss_scale"])


class LossScale:
    """What a loss is multiplied by so that float16 gradients do not vanish (arXiv 1710.03740 §3.2)."""

    def __init__(self) -> None:
        self.value, self.num_good = _FIRST_SCALE, 0

    def lower(self) -> bool:
        """After an overflow; False where no scale helps."""
        self.value, self.num_good = self.value / 2, 0
        return self.value >= 2.0**-14

    def succeed(self) -> None:
        """After a step; every now and then a larger scale is tried."""
        self.num_good += 1
        if self.num_good == _STEPS_BEFORE_DOUBLING:
            self.value, self.num_good = 2 * self.value, 0

    def state(self) -> Tensor:
        """float64 (2,)"""
        return torch.tensor([self.value, self.num_good], dtype=torch.float64)

    def restore(self, state: Tensor) -> None:
        """Go on from a state."""
        self.value, self.num_good = float(state[0]), int(state[1])


def _matrices(model: Transformer) -> list[nn.Parameter]:
    """The linear maps inside the layers, which Muon is made for."""
    return [
        typing.cast(nn.Parameter, module.weight)
        for block in model.blocks
        for module in block.modules()
        if isinstance(module, nn.Linear)
    ]
