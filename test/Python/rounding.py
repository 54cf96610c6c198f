"""How far apart two programs in f32 may be that compute the same: what follows from the lengths of their sums."""
import math

U = 2.0**-24  # the rounding of f32


def rounding(chain: int) -> float:
    """Of the magnitude of what they compute, with sums of `chain` terms together on the way.

    An addition rounds by U at most. `chain` roundings of random sign come to sqrt(chain) U, in both programs."""
    return 2 * math.sqrt(chain) * U


def linear_chain(rows: int, *sizes: int) -> int:
    """Of a training step of linear layers, `sizes` wide, on `rows` rows: forward over the features of each, backward
    over the outputs of each but the first; a loss that sums over the last size, and its mean; weights' gradients."""
    return sum(sizes[:-1]) + sum(sizes[2:]) + sizes[-1] + rows + rows
