"""Lightning modules with a compiled step train, log and resume as they do without it (docs/integrations.md)."""
from __future__ import annotations

import logging

import pytest
import torch
import torch.nn.functional as F
from torch import nn

pl = pytest.importorskip("pytorch_lightning")
from spmd.integrations.lightning import SpmdModule  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore")
logging.getLogger("pytorch_lightning").setLevel(logging.ERROR)


def define(base: type, interval: str = "step", **attributes) -> type:
    class Model(base):
        def __init__(self):
            super().__init__()
            self.net = nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 4))

        def training_step(self, batch, batch_idx):
            x, y = batch
            out = self.net(x)
            loss = F.cross_entropy(out, y)
            self.log("train_loss", loss, prog_bar=True)
            self.log_dict({"accuracy": (out.argmax(1) == y).float().mean(), "classes": out.shape[1]})
            return {"loss": loss}

        def validation_step(self, batch, batch_idx):
            self.log("val_loss", F.cross_entropy(self.net(batch[0]), batch[1]))

        def configure_optimizers(self):
            optimizer = torch.optim.SGD(self.parameters(), lr=0.1, momentum=0.9)
            schedule = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.9)
            return {"optimizer": optimizer, "lr_scheduler": {"scheduler": schedule, "interval": interval}}

    for name, value in attributes.items():
        setattr(Model, name, value)
    return Model


class Seen(pl.Callback):
    def __init__(self):
        self.rows: list[tuple[float, ...]] = []

    def on_train_batch_end(self, trainer, module, outputs, batch, batch_idx):
        metrics = trainer.callback_metrics
        self.rows.append((*(float(metrics[name]) for name in ("train_loss", "accuracy", "classes")), trainer.global_step,
                          trainer.optimizers[0].param_groups[0]["lr"]))

    def on_validation_end(self, trainer, module):
        self.rows.append((float(trainer.callback_metrics["val_loss"]),))


def fit(kind: type, folder, epochs: int = 2, resume: str | None = None, save: bool = False, **options):
    torch.manual_seed(0)
    model = kind()
    generator = torch.Generator().manual_seed(1)
    data = torch.utils.data.TensorDataset(torch.randn(44, 8, generator=generator),
                                          torch.randint(0, 4, (44,), generator=generator))
    loader, seen = torch.utils.data.DataLoader(data, batch_size=8), Seen()
    trainer = pl.Trainer(max_epochs=epochs, accelerator="cpu", devices=1, logger=False, enable_checkpointing=save,
                         enable_progress_bar=False, enable_model_summary=False, callbacks=[seen], num_sanity_val_steps=0,
                         default_root_dir=folder, **options)
    trainer.fit(model, loader, loader, ckpt_path=resume)
    return model, seen.rows, trainer


def check(ours: list, theirs: list) -> None:
    assert len(ours) == len(theirs)
    for a, b in zip(ours, theirs):
        assert a == pytest.approx(b, rel=1e-4)


@pytest.mark.parametrize("options", [{}, {"gradient_clip_val": 0.1}, {"accumulate_grad_batches": 2}], ids=str)
@pytest.mark.parametrize("interval", ["step", "epoch"])
def test_it_trains_like_lightning(options, interval: str, tmp_path) -> None:
    """The last batch of an epoch is smaller, and its gradients are not kept for the next."""
    _, theirs, _ = fit(define(pl.LightningModule, interval), tmp_path, **options)
    model, ours, _ = fit(define(SpmdModule, interval, spmd={"ranks": 2}, **options), tmp_path)
    check(ours, theirs)
    assert model.compiled.compiles <= 3


@pytest.mark.parametrize("first, second", [(SpmdModule, SpmdModule), (SpmdModule, pl.LightningModule),
                                           (pl.LightningModule, SpmdModule)])
def test_checkpoints_are_lightnings(first, second, tmp_path) -> None:
    """All but global_step, which Lightning counts apart in automatic and in manual optimization."""
    _, whole, _ = fit(define(pl.LightningModule), tmp_path / "whole", epochs=3)
    _, begun, trainer = fit(define(first), tmp_path / "begun", epochs=1, save=True)
    _, rest, _ = fit(define(second), tmp_path / "rest", epochs=3, resume=trainer.checkpoint_callback.best_model_path)
    if first is not second:
        whole, begun, rest = ([row[:3] + row[4:] for row in rows] for rows in (whole, begun, rest))
    check(begun + rest, whole)


def test_several_optimizers_are_an_error(tmp_path) -> None:
    class Two(define(SpmdModule)):
        def configure_optimizers(self):
            return [torch.optim.SGD(self.net[0].parameters(), lr=0.1), torch.optim.SGD(self.net[2].parameters(), lr=0.1)]

    with pytest.raises(ValueError, match="configure_optimizers returns 2 optimizers, but a SpmdModule supports one\n  hint: use one "):
        fit(Two, tmp_path)


@pytest.mark.parametrize("name", ["on_before_zero_grad", "on_before_backward"])
def test_weights_that_change_between_forward_and_backward_are_errors(name: str, tmp_path) -> None:
    """They are one compiled step. Eager PyTorch does not see a change of p.data either."""
    def hook(self, *args):
        for p in self.parameters():
            p.data.mul_(0.9)

    model = type("Changes", (define(SpmdModule, spmd={"ranks": 1}),), {name: hook})
    with pytest.raises(TypeError, match=rf"Changes\.{name} changes 'net\.0\.weight' between(.|\n)*test_lightning(.|\n)*  hint: "):
        fit(model, tmp_path)


def test_a_loss_that_changes_before_backward_is_an_error(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(Seen, "on_before_backward", lambda self, trainer, module, loss: loss.mul_(2), raising=False)
    with pytest.raises(TypeError, match=r"Seen\.on_before_backward changes the loss between(.|\n)*test_lightning"):
        fit(define(SpmdModule, spmd={"ranks": 1}), tmp_path)


def test_an_optimizer_step_without_its_closure_is_an_error(tmp_path) -> None:
    model = type("Own", (define(SpmdModule),), {"optimizer_step": lambda self, epoch, batch_idx, optimizer, closure: optimizer.step()})
    with pytest.raises(pl.utilities.exceptions.MisconfigurationException, match=r"Own\.optimizer_step does not call its closure"):
        fit(model, tmp_path)


class Skips:
    """Batches of some numbers, and with some rows; super() gives the rest."""

    def training_step(self, batch, batch_idx):
        if batch_idx % 3 == 1 or (batch[1] == 2).sum() > 3:
            return None
        result = super().training_step(batch, batch_idx)
        return {"loss": result["loss"] * (batch_idx + 1)}


@pytest.mark.parametrize("hooks", [{}, {"on_before_backward": lambda self, loss: None, "accumulate_grad_batches": 2}], ids=["whole", "apart"])
def test_batches_are_skipped(hooks, tmp_path) -> None:
    found = []
    for base in (pl.LightningModule, SpmdModule):
        options = {"accumulate_grad_batches": 2} if hooks and base is pl.LightningModule else {}
        kind = type("Model", (Skips, define(base, spmd={"ranks": 2})), hooks if base is SpmdModule else {})
        found.append(fit(kind, tmp_path, **options)[0])
    for theirs, ours in zip(*(one.parameters() for one in found)):
        torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-6)


def test_a_training_step_of_the_object_is_compiled(tmp_path) -> None:
    class Own(define(SpmdModule, spmd={"ranks": 1})):
        def __init__(self):
            super().__init__()
            self.training_step = lambda batch, batch_idx: type(self).training_step(self, batch, batch_idx)

    _, theirs, _ = fit(define(pl.LightningModule), tmp_path)
    _, ours, _ = fit(Own, tmp_path)
    check(ours, theirs)


def test_a_schedule_with_a_metric_is_an_error(tmp_path) -> None:
    class Plateau(define(SpmdModule)):
        def configure_optimizers(self):
            optimizer = torch.optim.SGD(self.parameters(), lr=0.1)
            return {"optimizer": optimizer, "lr_scheduler": torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer),
                    "monitor": "val_loss"}

    with pytest.raises(ValueError, match="a ReduceLROnPlateau: SpmdModule does not pass (.|\n)* hint: store the scheduler in an attribute"):
        fit(Plateau, tmp_path)


def test_a_training_step_of_another_class(tmp_path) -> None:
    """Of one that stands before SpmdModule; a validation_step that calls it trains nothing."""
    class Steps:
        def training_step(self, batch, batch_idx):
            loss = F.cross_entropy(self.net(batch[0]), batch[1])
            if self.training:
                self.log_dict({"train_loss": loss, "accuracy": loss, "classes": 4})
            return loss

        def validation_step(self, batch, batch_idx):
            self.log("val_loss", self.training_step(batch, batch_idx))

    def model(base):
        kind = define(base)
        del kind.training_step, kind.validation_step
        return type("Model", (Steps, kind), {"spmd": {"ranks": 2}})

    _, theirs, _ = fit(model(pl.LightningModule), tmp_path)
    _, ours, _ = fit(model(SpmdModule), tmp_path)
    check(ours, theirs)
