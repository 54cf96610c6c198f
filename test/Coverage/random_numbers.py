"""Random numbers: eager PyTorch draws here what a compiled step draws (spmd.capture.ops.draws)."""
import torch
import torch.nn.functional as F
from samples import by_hand, real, sample


def image(*shape, **options):
    return lambda dtype: sample(real(*shape, dtype=dtype), **options)


# Eager makes these in float32.
NORMAL = {"tolerance": 1e-6}

OPS = [
    by_hand("nn.functional.dropout", F.dropout, image(5, 4, p=0.3), image(3, 2, 5), image(7, p=0.0),
            image(3, 4, training=False)),
    by_hand("nn.functional.dropout (in place)", lambda x: F.dropout(x * 2, 0.4, inplace=True), image(5, 4)),
    by_hand("nn.functional.dropout1d", F.dropout1d, image(5, 4, 3, p=0.4)),
    by_hand("nn.functional.dropout2d", F.dropout2d, image(5, 4, 3, 2, p=0.4)),
    by_hand("nn.functional.dropout3d", F.dropout3d, image(3, 4, 2, 2, 2, p=0.4)),
    by_hand("nn.functional.alpha_dropout", lambda x: F.alpha_dropout(x, 0.3, training=True), image(5, 4)),
    by_hand("nn.functional.feature_alpha_dropout", lambda x: F.feature_alpha_dropout(x, 0.3, training=True),
            image(5, 4, 3)),
    by_hand("drop path", lambda x: x * x.new_empty(x.shape[0], 1).bernoulli_(0.8).div_(0.8), image(5, 4)),
    by_hand("bernoulli", lambda x: x * torch.bernoulli(x.detach().sigmoid()), image(5, 4)),
    by_hand("rand", lambda x: x * torch.rand(4) + torch.rand_like(x), image(5, 4)),
    by_hand("randn", lambda x: x * torch.randn(4) + torch.randn_like(x), image(5, 4), **NORMAL),
    by_hand("randint", lambda x: x * torch.randint(2, 9, (5, 4)), image(5, 4)),
    by_hand("uniform_", lambda x: x * torch.empty(5, 1).uniform_(-1, 2), image(5, 4), **NORMAL),
    by_hand("normal_", lambda x: x * torch.empty(4).normal_(1, 0.1) + torch.normal(x.detach(), 0.5),
            image(5, 4), **NORMAL),
    by_hand("exponential_", lambda x: x * torch.empty(5, 4).exponential_(2), image(5, 4), **NORMAL),
    by_hand("nn.functional.gumbel_softmax", F.gumbel_softmax, image(5, 4, tau=2.0), **NORMAL),
]
