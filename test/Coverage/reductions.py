"""Sums, means, variances, extremes, norms; scans."""
import torch

from samples import by_hand, from_database, real, sample

SUMS = ("sum", "mean", "prod", "nansum", "nanmean", "sum_to_size", "count_nonzero", "any", "all", "logsumexp", "trace")
EXTREMES = ("amax", "amin", "max.reduction_no_dim", "max.reduction_with_dim", "min.reduction_no_dim", "min.reduction_with_dim",
            "argmax", "argmin", "aminmax", "median", "mode", "kthvalue")
STATISTICS = ("var", "var.unbiased", "std", "std.unbiased", "var_mean", "var_mean.unbiased", "std_mean", "std_mean.unbiased",
              "cov", "corrcoef")
NORMS = ("norm", "norm.fro", "norm.inf", "linalg.norm", "linalg.vector_norm", "linalg.matrix_norm", "dist", "renorm",
         "nn.functional.normalize", "nn.functional.cosine_similarity", "nn.functional.pairwise_distance")
SCANS = ("cumsum", "cumprod", "logcumsumexp", "cummax", "cummin", "trapezoid", "cumulative_trapezoid", "diff")
SOFTMAX = ("softmax", "softmax.with_dtype", "log_softmax", "log_softmax.with_dtype", "nn.functional.softmin")

# The conversion to kernels fails on the gradient of cumprod, which PyTorch writes with many small pieces.
OPTIONS = {"cumprod": dict(gradient=False), "prod": dict(gradient=False)}

OPS = [from_database(name, **OPTIONS.get(name, {})) for name in (*SUMS, *EXTREMES, *STATISTICS, *NORMS, *SCANS, *SOFTMAX)]
