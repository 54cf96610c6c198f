"""Order: sort, topk, medians, buckets."""
import torch

from samples import by_hand, from_database, real, sample

OPS = [from_database(name) for name in (
    "sort", "argsort", "msort", "topk", "kthvalue", "median", "searchsorted", "bucketize",
    # What they give depends on values.
    "unique", "nonzero", "mode",
)] + [
    by_hand("sort of equal elements", lambda x: (x / 2).floor().sort(-1, stable=True), lambda d: sample(real(6, 9, dtype=d) * 3)),
]
