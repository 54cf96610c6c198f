"""Sums, means, variances, extremes, norms; scans."""
import torch

from samples import by_hand, from_database, real, sample

SUMS = ("sum", "mean", "prod", "nansum", "nanmean", "sum_to_size", "count_nonzero", "any", "all", "logsumexp", "trace")
EXTREMES = ("amax", "amin", "max.reduction_no_dim", "max.reduction_with_dim", "min.reduction_no_dim",
            "min.reduction_with_dim", "argmax", "argmin", "aminmax", "median", "mode", "quantile", "nanquantile")
STATISTICS = ("var", "var.unbiased", "std", "std.unbiased", "var_mean", "var_mean.unbiased", "std_mean",
              "std_mean.unbiased", "cov", "corrcoef")
NORMS = ("norm", "norm.fro", "norm.inf", "linalg.norm", "linalg.vector_norm", "linalg.matrix_norm",
         "linalg.norm.subgradients_at_zero", "dist", "cdist", "renorm", "nn.functional.normalize",
         "nn.functional.cosine_similarity", "nn.functional.pairwise_distance")
SCANS = ("cumsum", "cumprod", "logcumsumexp", "cummax", "cummin", "trapezoid", "trapz", "cumulative_trapezoid",
         "diff", "gradient")
MASKED = tuple(f"masked.{name}" for name in ("sum", "prod", "amax", "amin", "mean", "norm", "var", "std",
                                             "cumsum", "softmax",
                                              "log_softmax", "normalize", "logsumexp"))
SOFTMAX = ("softmax", "softmax.with_dtype", "log_softmax", "log_softmax.with_dtype", "nn.functional.softmin",
           "nn.functional.softmin.with_dtype", "torch.ops.aten._safe_softmax.default")


def without_singular_values(one):
    return (one.args[1:] or [one.kwargs.get("ord", "fro")])[0] not in ("nuc", 2, -2)


def of_one_dtype(one):
    """PyTorch computes weights of float32 in float32."""
    return one.kwargs.get("aweights") is None or one.kwargs["aweights"].dtype == one.args[0].dtype


# Roots of sums of roots, and logarithms of differences: a few tens of epsilons.
OPTIONS = {"cov": dict(keep=of_one_dtype), "linalg.matrix_norm": dict(keep=without_singular_values),
           "nn.functional.normalize": dict(tolerance=1e-11), "logcumsumexp": dict(tolerance=1e-11)}

OPS = [from_database(name, **OPTIONS.get(name, {})) for name in (*SUMS, *EXTREMES, *STATISTICS, *NORMS, *SCANS,
                                                                 *SOFTMAX, *MASKED)]
OPS += [
    by_hand("linalg.matrix_norm, nuclear", lambda x: torch.linalg.matrix_norm(x, "nuc"),
            lambda d: sample(real(4, 5, dtype=d))),
    by_hand("cdist, orders", lambda x, y: tuple(torch.cdist(x, y, p) for p in (0.5, 1.0, 1.5, 2.0, 3.0, float("inf"))),
            lambda d: sample(real(2, 4, 3, dtype=d), real(2, 5, 3, dtype=d))),
    # On the edges of bins, below and above them.
    by_hand("histc", torch.histc, lambda d: sample(real(4, 5, dtype=d, gradient=False), bins=7, min=-1, max=1.5),
            lambda d: sample(torch.arange(-2, 9).to(d), bins=4, min=0, max=4)),
]
