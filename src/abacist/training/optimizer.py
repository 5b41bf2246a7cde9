"""The optimiser: AdamW over all parameters as one vector.

A small model has a score of small tensors, and a step that visits each of them spends more time
on visiting than on arithmetic. Laid side by side in one vector they are clipped, decayed and
updated by a handful of operations, element by element the same.
"""

import torch
from torch import Tensor, nn

from abacist.models.transformer import Transformer
from abacist.training.config import TrainingConfig

MOMENTS = ("step", "exp_avg", "exp_avg_sq")
"""What AdamW remembers between steps."""


class FlatAdamW:
    """AdamW (arXiv 1711.05101) with gradient clipping, over one vector of all parameters.

    The model's parameters become views of the vector, and so do their gradients; the model is
    used as before.
    """

    def __init__(self, model: Transformer, config: TrainingConfig) -> None:
        self.clip_norm = config.clip_norm
        parameters = list(model.parameters())
        with torch.no_grad():
            flat = torch.cat([parameter.flatten() for parameter in parameters])
            self.weights = nn.Parameter(flat)
            self.gradient = torch.zeros_like(flat)
            self.weights.grad = self.gradient
            sizes = [parameter.numel() for parameter in parameters]
            for parameter, weights, gradient in zip(
                parameters,
                torch.split(self.weights.data, sizes),
                torch.split(self.gradient, sizes),
                strict=True,
            ):
                parameter.data = weights.view_as(parameter)
                parameter.grad = gradient.view_as(parameter)
        self.adamw = torch.optim.AdamW(
            [self.weights],
            lr=config.learning_rate,
            betas=(config.beta1, config.beta2),
            weight_decay=config.weight_decay,
            fused=True,
        )

    def zero_gradient(self) -> None:
        """Forget the last step's gradient."""
        self.gradient.zero_()

    def step(self, learning_rate: float) -> bool:
        """Clip, then update; False, and nothing done, where the gradient is not finite."""
        norm = self.gradient.norm()
        if not torch.isfinite(norm):
            return False
        self.gradient.mul_((self.clip_norm / (norm + 1e-6)).clamp(max=1.0))
        self.adamw.param_groups[0]["lr"] = learning_rate
        self.adamw.step()
        return True

    def moments(self) -> dict[str, Tensor]:
        """What must be kept to go on later; empty before the first step."""
        return {name: self.adamw.state[self.weights][name] for name in MOMENTS}

    def restore(self, moments: dict[str, Tensor]) -> None:
        """Go on with moments that were kept."""
        self.adamw.state[self.weights] = {name: moments[name].clone() for name in MOMENTS}
