"""Reading and writing by number: indexing, gather, scatter, embedding, labels."""
import torch
import torch.nn.functional as F

from samples import by_hand, from_database, real, sample


def ids(bound, *shape):
    return torch.randint(bound, shape)


def dispatch_densely(x, w):
    top = w.topk(2)
    return torch.zeros_like(w).scatter(1, top.indices, top.values.softmax(-1)) @ x


OPS = [from_database(name) for name in (
    "gather", "take", "take_along_dim", "index_select", "scatter", "scatter_add", "scatter_reduce.sum",
    "scatter_reduce.prod", "scatter_reduce.amax", "scatter_reduce.amin", "index_add", "index_copy",
    "index_reduce.prod", "index_reduce.amax", "index_reduce.amin", "put", "masked_fill", "where",
    "nn.functional.embedding", "nn.functional.embedding_bag", "nn.functional.nll_loss", "nn.functional.cross_entropy",
    # What is selected depends on values.
    "masked_select", "masked_scatter",
)] + [
    from_database("scatter_reduce.mean", keep=lambda one: one.args[0].is_floating_point()),
    from_database("index_reduce.mean", keep=lambda one: one.args[0].is_floating_point()),
    # Gradients that PyTorch computes from how many indices there are, or of elements that a mask selects.
    from_database("index_fill", gradient=False),
    from_database("index_put", keep=lambda one: all(i.dtype == torch.int64 for i in one.args[1])),
    by_hand("x[i]", lambda x, i: x[i], lambda d: sample(real(5, 3, dtype=d), ids(5, 4)),
            lambda d: sample(real(5, 3, dtype=d), ids(5, 2, 4) - 5)),
    by_hand("x[i, j]", lambda x, i, j: x[i, j], lambda d: sample(real(5, 4, 3, dtype=d), ids(5, 6), ids(4, 6) - 4),
            lambda d: sample(real(5, 4, dtype=d), ids(5, 6, 1), ids(4, 3))),
    by_hand("x[:, i, j]", lambda x, i, j: x[:, i, j],
            lambda d: sample(real(2, 5, 4, 3, dtype=d), ids(5, 6), ids(4, 6))),
    by_hand("x[i, :, j]", lambda x, i, j: x[i, :, j],
            lambda d: sample(real(5, 2, 4, 3, dtype=d), ids(5, 6), ids(4, 6))),
    by_hand("x[:, None, i]", lambda x, i: x[:, None, i], lambda d: sample(real(2, 5, 4, dtype=d), ids(5, 6))),
    by_hand("x[arange, i]", lambda x, i: x[torch.arange(6), i], lambda d: sample(real(6, 4, dtype=d), ids(4, 6)),
            lambda d: sample(real(6, 4, 3, dtype=d), ids(4, 6))),
    by_hand("x[:, arange, i]", lambda x, i: x[:, torch.arange(6), i],
            lambda d: sample(real(2, 6, 4, dtype=d), ids(4, 6))),
    by_hand("x[arange[:, None], arange]", lambda x: x[torch.arange(6)[:, None], torch.arange(4)],
            lambda d: sample(real(6, 4, 3, dtype=d))),
    by_hand("x[arange, i] = y", lambda x, i, y: x.clone().index_put((torch.arange(6), i), y),
            lambda d: sample(real(6, 4, dtype=d), ids(4, 6), real(6, dtype=d))),
    by_hand("x[m] = y", lambda x, y: torch.where(x > 0, x, x).index_put((x.detach() > 0,), y),
            lambda d: sample(real(5, 3, dtype=d), real(dtype=d)), gradient=False),
    by_hand("gather of rows", lambda x, i: x.gather(1, i[:, :, None].expand(-1, -1, 3)),
            lambda d: sample(real(4, 5, 3, dtype=d), ids(5, 4, 2))),
    by_hand("embedding, padding_idx", lambda w, i: F.embedding(i, w, padding_idx=2),
            lambda d: sample(real(5, 3, dtype=d), ids(5, 4, 6))),
    by_hand("embedding of computed ids", lambda w, i: F.embedding((i * 3 + 1) % 5, w),
            lambda d: sample(real(5, 3, dtype=d), ids(5, 4, 6))),
    *(by_hand(f"nn.functional.embedding_bag, {mode}", lambda w, i, o, mode=mode: (
        F.embedding_bag(i, w, o, mode=mode), F.embedding_bag(i, w, o[:4], mode=mode, padding_idx=2),
        F.embedding_bag(i, w, o, mode=mode, include_last_offset=True),
        F.embedding_bag(i.view(3, 4), w, mode=mode, padding_idx=1)),
              # The second bag is empty.
              lambda d: sample(real(5, 3, dtype=d), torch.tensor([2, 0, 4, 2, 1, 1, 3, 0, 2, 2, 4, 1]),
                               torch.tensor([0, 3, 3, 8, 12])))
      for mode in ("sum", "mean", "max")),
    by_hand("dense dispatch", dispatch_densely,
            lambda d: sample(real(4, 3, dtype=d), real(6, 4, dtype=d))),
]
