"""Order: sort, topk, medians, buckets."""
import torch

from samples import by_hand, from_database, real, sample


def is_float(one):
    """PyTorch leaves the order of equal elements open, and integers are often equal."""
    return one.args[0].is_floating_point()


OPS = [
    from_database("sort", keep=is_float),
    from_database("argsort", keep=is_float),
    from_database("msort", keep=is_float),
    from_database("topk", keep=is_float),
    from_database("kthvalue", keep=is_float),
    from_database("median", keep=is_float),
    from_database("searchsorted", keep=lambda one: one.kwargs.get("sorter") is None),
    from_database("bucketize"),
    # What they give depends on values.
    from_database("unique"), from_database("nonzero"), from_database("mode"),
    by_hand("sort of equal elements", lambda x: (x / 2).floor().sort(dim=-1, stable=True),
            lambda d: sample(real(6, 9, dtype=d) * 3)),
]
