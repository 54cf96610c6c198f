"""Views, copies of other shapes, pads, factories."""
import torch
import torch.nn.functional as F

from samples import by_hand, from_database, real, sample


def write_by_steps(x, y):
    x = x.clone()
    x[1::2] = y
    return x


def write_diagonal(x, y):
    x = x.clone()
    x.diagonal().copy_(y)
    return x


def is_fixed(one):
    """Where to cut does not depend on values."""
    return not any(isinstance(given, torch.Tensor) for given in (*one.args[1:], *one.kwargs.values()))


OPS = [from_database(name, **({"keep": is_fixed} if name in ("narrow", "tensor_split", "repeat_interleave")
                              else {})) for name in (
    # Views.
    "view", "view_as", "reshape", "reshape_as", "flatten", "unflatten", "ravel", "permute", "transpose", "t", "T", "mT",
    "movedim", "expand", "expand_as", "broadcast_to", "squeeze", "squeeze.multiple", "unsqueeze",
    "atleast_2d", "select", "slice", "narrow", "narrow_copy", "split", "split.list_args", "split_with_sizes",
    "unsafe_split", "chunk", "unsafe_chunk", "tensor_split", "hsplit", "vsplit", "dsplit", "unbind", "diagonal",
    "linalg.diagonal", "unfold", "atleast_1d", "atleast_3d", "H", "mH",
    # The same as copies.
    "alias_copy", "expand_copy", "permute_copy", "squeeze_copy", "t_copy", "transpose_copy", "unbind_copy",
    "unfold_copy", "unsqueeze_copy", "view_copy", "diagonal_copy", "split_with_sizes_copy",
    # Put together, repeated, turned.
    "cat", "stack", "hstack", "vstack", "dstack", "column_stack", "block_diag", "repeat", "tile", "repeat_interleave",
    "roll", "rot90", "flip", "fliplr", "flipud", "meshgrid.list_of_tensors", "meshgrid.variadic_tensors",
    "cartesian_prod", "fft.fftshift", "fft.ifftshift", "broadcast_tensors", "clone", "contiguous",
    "nn.functional.pixel_shuffle", "nn.functional.pixel_unshuffle", "nn.functional.channel_shuffle", "kron", "outer",
    "linalg.vander",
    # Parts replaced.
    "select_scatter", "diagonal_scatter", "diag_embed", "diagflat", "tril", "triu",
    # Pads.
    "nn.functional.pad.constant", "constant_pad_nd", "nn.functional.pad.reflect", "nn.functional.pad.replicate",
    "nn.functional.pad.replicate_negative", "nn.functional.pad.circular",
    # Like factories.
    "zeros_like", "ones_like", "full_like", "new_zeros", "new_ones", "new_full", "fill", "zero_",
    # Layouts of memory say nothing of values.
    "as_strided",
)] + [
    by_hand("diag", torch.diag, lambda d: sample(real(4, dtype=d), 1), lambda d: sample(real(3, 5, dtype=d), -1)),
    by_hand("trace", torch.trace, lambda d: sample(real(4, 3, dtype=d)), lambda d: sample(real(3, 5, dtype=d))),
    by_hand("slice by steps", lambda x: x[1::3, :, 2:-1:2], lambda d: sample(real(7, 2, 8, dtype=d)),
            lambda d: sample(real(4, 1, 5, dtype=d))),
    by_hand("x[1::2] = y", write_by_steps, lambda d: sample(real(7, 3, dtype=d), real(3, 3, dtype=d)),
            lambda d: sample(real(4, 3, dtype=d), real(3, dtype=d))),
    by_hand("x.diagonal().copy_(y)", write_diagonal, lambda d: sample(real(4, 3, dtype=d), real(3, dtype=d))),
    by_hand("factories", lambda x: (
        x[:3, :4] * torch.eye(3, 4, dtype=x.dtype), x[:, 0] * torch.linspace(-1, 2, 7, dtype=x.dtype),
        x[:, 1] * torch.logspace(0, 1, 7, base=2, dtype=x.dtype),
        x[torch.tril_indices(4, 3, -1)[0], torch.triu_indices(3, 3, 0)[1]], x * torch.arange(5, dtype=x.dtype),
        x + torch.full((5,), 2.5, dtype=x.dtype)),
        lambda d: sample(real(7, 5, dtype=d))),
    # Tensors without elements, as caches that start empty and heads without a part make them.
    by_hand("empty tensors", lambda x, y, w: (
        torch.cat([x[:, :0], x, x[:, 4:]], 1), x[:0].exp().sum(0) + x, (x[:, :0] @ w[:0]) + y,
        torch.addmm(y, x[:, :0], w[:0], beta=0.5),
        sum(part.sum() for part in (x * 2).split_with_sizes([0, 3, 0, 1], 1)),
        x.clone().index_copy(0, torch.arange(0), y[:0, :4]),
        F.pad(x[:, :0], (1, 2), value=3.0) * 2, x.clone().narrow(0, 1, 0).mul_(2).sum() + x.sum(), x[:0]),
        lambda d: sample(real(3, 4, dtype=d), real(3, 5, dtype=d), real(4, 5, dtype=d))),
    by_hand("one_hot", lambda x, i: x * F.one_hot(i, 5), lambda d: sample(real(7, 5, dtype=d), torch.randint(5, (7,)))),
]
