"""Losses, with each reduction."""
import torch
import torch.nn.functional as F

from samples import by_hand, from_database, real, sample

NAMES = ("mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss", "binary_cross_entropy",
         "binary_cross_entropy_with_logits", "soft_margin_loss", "margin_ranking_loss", "hinge_embedding_loss",
         "cosine_embedding_loss", "triplet_margin_loss", "kl_div", "poisson_nll_loss", "gaussian_nll_loss",
         "multilabel_soft_margin_loss", "multi_margin_loss", "multilabel_margin_loss", "nll_loss", "cross_entropy",
         "linear_cross_entropy")

TOLERANCES = {
    # Logarithms of samples close to 0 and 1.
    "binary_cross_entropy": dict(host_tolerance=1e-4),
}

OPS = [from_database(f"nn.functional.{name}", **TOLERANCES.get(name, {})) for name in NAMES]


def labels(*rows):
    return torch.tensor(rows)


OPS += [
    by_hand("nn.functional.multi_margin_loss, weights", lambda x, y, w: tuple(
        F.multi_margin_loss(x, y, p=p, margin=0.7, weight=w, reduction=r) for p in (1, 2) for r in ("none",
                                                                                                    "mean", "sum")),
            lambda t: sample(real(6, 4, dtype=t), torch.randint(4, (6,)), torch.rand(4, dtype=t))),
    # Labels end at the first -1; one stands twice.
    by_hand("nn.functional.multilabel_margin_loss, reductions", lambda x, y: tuple(
        F.multilabel_margin_loss(x, y, reduction=r) for r in ("none", "mean", "sum")),
            lambda t: sample(real(4, 3, dtype=t), labels([0, 2, -1], [-1, 1, 1], [1, 1, -1], [2, 0, 1]))),
]
OPS += [by_hand(f"nn.functional.binary_cross_entropy_with_logits, weights, {reduction}",
                lambda x, y, w, p, reduction=reduction: F.binary_cross_entropy_with_logits(
                    x, y, weight=w, pos_weight=p, reduction=reduction),
                lambda t: sample(real(6, 4, dtype=t), torch.rand(6, 4, dtype=t), torch.rand(6, 4, dtype=t),
                                 torch.rand(4, dtype=t)))
        for reduction in ("none", "mean", "sum")]
