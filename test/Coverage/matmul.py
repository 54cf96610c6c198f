"""Products of matrices and vectors."""
import torch
from samples import by_hand, from_database, real, sample

DATABASE = ["mm", "bmm", "addmm", "baddbmm", "addbmm", "addmv", "addr", "mv", "dot", "vdot", "outer", "inner", "matmul",
            "einsum", "tensordot", "linalg.vecdot", "linalg.multi_dot", "kron", "addmm.decomposed", "__rmatmul__",
            "nn.functional.bilinear", "cross", "linalg.cross"]

OPS = [from_database(name) for name in DATABASE] + [
    by_hand("linear over several dims", torch.nn.functional.linear,
            lambda dtype: sample(real(3, 2, 4, dtype=dtype), real(5, 4, dtype=dtype), real(5, dtype=dtype))),
    by_hand("einsum (transposed batches)", lambda a, b: torch.einsum("bthd,bshd->bhts", a, b),
            lambda dtype: sample(real(3, 4, 2, 5, dtype=dtype), real(3, 6, 2, 5, dtype=dtype))),
    by_hand("bmm (every transposition)",
            lambda a, b: (torch.bmm(a, b), torch.bmm(b.mT, a.mT), torch.bmm(a.mT, b.mT.contiguous().mT.mT)),
            lambda dtype: sample(real(3, 4, 4, dtype=dtype), real(3, 4, 4, dtype=dtype))),
]
