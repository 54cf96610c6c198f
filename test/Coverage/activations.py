"""Activation functions."""

from samples import from_database

NAMES = ("relu", "relu6", "leaky_relu", "prelu", "rrelu", "elu", "selu", "celu", "gelu", "silu", "mish", "softplus",
         "softsign", "logsigmoid", "hardtanh", "hardswish", "hardsigmoid", "hardshrink", "softshrink", "tanhshrink",
         "threshold", "glu")


def without_training(one):
    """rrelu draws random slopes in training."""
    return not one.kwargs.get("training", False)


# PyTorch divides by a sixth that it rounds to float32.
TOLERANCES = {"hardsigmoid": dict(tolerance=1e-7)}

OPS = [from_database(f"nn.functional.{name}", keep=without_training, **TOLERANCES.get(name, {})) for name in NAMES]
