"""Sums, means, variances, extremes, norms; scans."""
import torch

from samples import by_hand, from_database, real, sample

SUMS = ("sum", "mean", "prod", "nansum", "nanmean", "sum_to_size", "count_nonzero", "any", "all", "logsumexp", "trace")
EXTREMES = ("amax", "amin", "max.reduction_no_dim", "max.reduction_with_dim", "min.reduction_no_dim", "min.reduction_with_dim",
            "argmax", "argmin", "aminmax", "median", "mode")
STATISTICS = ("var", "var.unbiased", "std", "std.unbiased", "var_mean", "var_mean.unbiased", "std_mean", "std_mean.unbiased",
              "cov", "corrcoef")
NORMS = ("norm", "norm.fro", "norm.inf", "linalg.norm", "linalg.vector_norm", "linalg.matrix_norm", "dist", "renorm",
         "nn.functional.normalize", "nn.functional.cosine_similarity", "nn.functional.pairwise_distance")
SCANS = ("cumsum", "cumprod", "logcumsumexp", "cummax", "cummin", "trapezoid", "cumulative_trapezoid", "diff")
SOFTMAX = ("softmax", "softmax.with_dtype", "log_softmax", "log_softmax.with_dtype", "nn.functional.softmin")

# Roots of sums of roots, and logarithms of differences: a few tens of epsilons.
OPTIONS = {"nn.functional.normalize": dict(tolerance=1e-11), "logcumsumexp": dict(tolerance=1e-11)}

OPS = [from_database(name, **OPTIONS.get(name, {})) for name in (*SUMS, *EXTREMES, *STATISTICS, *NORMS, *SCANS, *SOFTMAX)]
OPS += [
    # On the edges of bins, below and above them.
    by_hand("histc", torch.histc, lambda d: sample(real(4, 5, dtype=d, gradient=False), bins=7, min=-1, max=1.5),
            lambda d: sample(torch.arange(-2, 9).to(d), bins=4, min=0, max=4)),
]
