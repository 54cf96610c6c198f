"""Activation functions."""

from samples import from_database

NAMES = ("relu", "relu6", "leaky_relu", "prelu", "rrelu", "elu", "selu", "celu", "gelu", "silu", "mish", "softplus",
         "softsign", "logsigmoid", "hardtanh", "hardswish", "hardsigmoid", "hardshrink", "softshrink", "tanhshrink",
         "threshold", "glu")


def without_training(one):
    """rrelu draws random slopes in training."""
    return not one.kwargs.get("training", False)


OPS = [from_database(f"nn.functional.{name}", keep=without_training) for name in NAMES]
