"""The optimiser: AdamW, or Muon and AdamW, over all parameters as one vector.

A small model has about twenty small tensors, and a step that visits each of them spends more time
on calls than on arithmetic. In one vector, they are clipped, decayed and updated by a handful of
operations, with the same result for every element.
"""

import typing
from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn
from torch.optim.adamw import adamw

from abacist.models.encodings import RelativeBias
from abacist.models.transformer import Transformer
from abacist.training.config import TrainingConfig

_INITIAL_LOSS_SCALE = 2.0**16
_SMALLEST_LOSS_SCALE = 2.0**-14
_STEPS_BEFORE_DOUBLING = 2_000


class Optimizer:
    """AdamW (arXiv 1711.05101) over one vector of all parameters, with gradient clipping.

    The model's parameters and their gradients become views of two vectors; the model is used as
    before. With Muon (arXiv 2502.16982), the matrices inside the layers are updated by Muon and
    all other parameters by AdamW. With `relative_bias_rate`, relative position biases have a learning
    rate of their own. With `ema_decay`, an exponential moving average of the weights is kept as well.
    """

    def __init__(self, model: Transformer, config: TrainingConfig) -> None:
        self.clip_norm, self.ema_decay = config.clip_norm, config.ema_decay
        matrices = _matrices(model) if config.optimizer == "muon" else []
        biases = _relative_biases(model) if config.relative_bias_rate != 1 else []
        own_ids = {id(parameter) for parameter in (*matrices, *biases)}
        others = [parameter for parameter in model.parameters() if id(parameter) not in own_ids]
        with torch.no_grad():
            parameters = [*others, *biases, *matrices]
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
        num_biases = sum(parameter.numel() for parameter in biases)
        count = sum(parameter.numel() for parameter in others) + num_biases
        self.adamw = AdamW(self.flat[:count], self.gradient[:count], config, num_biases)
        self.muon: torch.optim.Optimizer | None = None
        if matrices:
            # Updates are scaled to the size of AdamW's, so that both use one learning rate.
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
        """Set the gradient to zero."""
        self.gradient.zero_()

    def step(self, learning_rate: float) -> bool:
        """Clip the gradient and update the weights.

        Returns False, and leaves the weights as they are, where the gradient is not finite. In
        half precision an occasional overflow only lowers the loss scale: the step is skipped and
        the result is True.
        """
        if self.loss_scale is not None:
            self.gradient.mul_(1 / self.loss_scale.value)
        norm = self.gradient.norm()
        if not torch.isfinite(norm):
            return self.loss_scale is not None and self.loss_scale.lower()
        if self.clip_norm is not None:
            self.gradient.mul_((self.clip_norm / (norm + 1e-6)).clamp(max=1.0))
        self.adamw.step(learning_rate)
        if self.muon is not None:
            self.muon.param_groups[0]["lr"] = learning_rate
            self.muon.step()
        if self.average is not None:
            # A smaller decay at first, so that the average soon forgets the initial weights.
            self.num_averaged += 1
            decay = min(self.ema_decay, self.num_averaged / (self.num_averaged + 9))
            self.average.lerp_(self.flat, 1 - decay)
        if self.loss_scale is not None:
            self.loss_scale.succeed()
        return True

    @contextmanager
    def averaged(self) -> Iterator[None]:
        """Give the model its averaged weights, where an average is kept, within a `with` block."""
        if self.average is None:
            yield
            return
        current = self.flat.clone()
        self.flat.copy_(self.average)
        try:
            yield
        finally:
            self.flat.copy_(current)

    def adopt_average(self) -> None:
        """Replace the model's weights by the averaged ones, where an average is kept."""
        if self.average is not None:
            self.flat.copy_(self.average)

    def state(self) -> dict[str, Tensor]:
        """Return all that resuming needs besides the model's saved (averaged) weights, by name."""
        return {name: tensor.cpu().clone() for name, tensor in self._tensors().items()}

    def empty_state(self) -> dict[str, Tensor]:
        """Return tensors without data that have the names, shapes and types of `state()`."""
        return {
            name: torch.empty_like(tensor, device="meta")
            for name, tensor in self._tensors().items()
        }

    def _tensors(self) -> dict[str, Tensor]:
        tensors = self.adamw.state()
        if self.muon is not None:
            for number, matrix in enumerate(self.muon.param_groups[0]["params"]):
                # Muon makes the buffers in its first step; until then they stand for zeros.
                momentum = self.muon.state[matrix].get("momentum_buffer")
                tensors[f"muon.{number}"] = (
                    torch.zeros_like(matrix) if momentum is None else momentum
                )
        if self.average is not None:
            tensors |= {"weights": self.flat, "num_averaged": torch.tensor(self.num_averaged)}
        if self.loss_scale is not None:
            tensors["loss_scale"] = self.loss_scale.state()
        return tensors

    def restore(self, state: dict[str, Tensor]) -> None:
        """Restore a state; the model must have its saved (averaged) weights already."""
        device = self.flat.device
        self.adamw.restore(state)
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


class AdamW:
    """AdamW over one vector, by the fused kernel of `torch.optim.AdamW`.

    Making an object of that class imports torch's compiler, which takes longer than a hundred steps.

    Args:
        weights: the parameters, which are updated in place.
        gradient: their gradient.
        config: the settings of the optimiser.
        num_biases: number of relative position biases at the end of `weights`.
    """

    def __init__(
        self, weights: Tensor, gradient: Tensor, config: TrainingConfig, num_biases: int = 0
    ) -> None:
        self.weights, self.gradient = weights, gradient
        self.betas, self.weight_decay = (config.beta1, config.beta2), config.weight_decay
        self.bias_rate, self.num_others = config.relative_bias_rate, len(weights) - num_biases
        # The fused kernel needs its step count on the device of the weights.
        self.num_steps = torch.zeros((), device=weights.device)
        self.mean, self.mean_square = torch.zeros_like(weights), torch.zeros_like(weights)

    def step(self, learning_rate: float) -> None:
        """Update the weights."""
        before = self.num_steps.clone() if self.num_others < len(self.weights) else None
        self._update(slice(0, self.num_others), self.num_steps, learning_rate, self.weight_decay)
        if before is not None:
            # The kernel multiplies both, and the biases decay like all other weights.
            rate, decay = self.bias_rate * learning_rate, self.weight_decay / self.bias_rate
            self._update(slice(self.num_others, None), before, rate, decay)

    @torch.no_grad()
    def _update(self, part: slice, num_steps: Tensor, learning_rate: float, decay: float) -> None:
        """Update a part of the weights after `num_steps` steps, which become one more."""
        adamw(
            [self.weights[part]],
            [self.gradient[part]],
            [self.mean[part]],
            [self.mean_square[part]],
            [],
            [num_steps],
            fused=True,
            amsgrad=False,
            beta1=self.betas[0],
            beta2=self.betas[1],
            lr=learning_rate,
            weight_decay=decay,
            eps=1e-8,
            maximize=False,
        )

    def state(self) -> dict[str, Tensor]:
        """Return the number of steps, the mean gradient and the mean squared gradient, by name."""
        return {"step": self.num_steps, "exp_avg": self.mean, "exp_avg_sq": self.mean_square}

    def restore(self, state: dict[str, Tensor]) -> None:
        """Restore a state."""
        for name, tensor in self.state().items():
            tensor.copy_(state[name])


class LossScale:
    """A factor for the loss that keeps float16 gradients from underflowing (arXiv 1710.03740 §3.2)."""

    def __init__(self) -> None:
        self.value, self.num_good = _INITIAL_LOSS_SCALE, 0

    def lower(self) -> bool:
        """Halve the factor after an overflow; return False where it is too small to help."""
        self.value, self.num_good = self.value / 2, 0
        return self.value >= _SMALLEST_LOSS_SCALE

    def succeed(self) -> None:
        """Count a step without overflow, and double the factor after every 2,000 of them."""
        self.num_good += 1
        if self.num_good == _STEPS_BEFORE_DOUBLING:
            self.value, self.num_good = 2 * self.value, 0

    def state(self) -> Tensor:
        """Return the factor and the number of steps since it changed, float64 (2,)."""
        return torch.tensor([self.value, self.num_good], dtype=torch.float64)

    def restore(self, state: Tensor) -> None:
        """Restore a state."""
        self.value, self.num_good = float(state[0]), int(state[1])


def _matrices(model: Transformer) -> list[nn.Parameter]:
    """Return the weights of the linear maps inside the layers, which Muon is designed for."""
    return [
        typing.cast(nn.Parameter, module.weight)
        for block in model.blocks
        for module in block.modules()
        if isinstance(module, nn.Linear)
    ]


def _relative_biases(model: Transformer) -> list[nn.Parameter]:
    """Return the tables of relative position biases."""
    return [module.table for module in model.modules() if isinstance(module, RelativeBias)]
