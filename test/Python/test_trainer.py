"""Hugging Face's Trainer with a compiled step logs and saves what the Trainer does (docs/integrations.md)."""
from __future__ import annotations

import json

import pytest
import torch

pytest.importorskip("accelerate")
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainerCallback, TrainingArguments  # noqa: E402

import spmd  # noqa: E402
from spmd.integrations.transformers import SpmdTrainer  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore")


def rows(count: int) -> list[dict[str, torch.Tensor]]:
    """Of each some labels do not count, others in each."""
    generator = torch.Generator().manual_seed(0)
    made = []
    for number in range(count):
        ids = torch.randint(0, 50, (9,), generator=generator)
        labels = ids.clone()
        labels[:number % 4] = -100
        made.append({"input_ids": ids, "labels": labels})
    return made


def trainer(kind: type[Trainer], folder, dropout: float = 0.0, spmd: dict | None = None, **options) -> Trainer:
    torch.manual_seed(0)
    model = GPT2LMHeadModel(GPT2Config(n_layer=2, n_embd=32, n_head=2, vocab_size=50, n_positions=16, attn_pdrop=dropout,
                                       resid_pdrop=dropout, embd_pdrop=dropout))
    options = {"per_device_train_batch_size": 8, "learning_rate": 1e-2, "num_train_epochs": 2, "logging_steps": 1,
               "lr_scheduler_type": "cosine", "warmup_steps": 2, "weight_decay": 0.1, "save_strategy": "no", **options}
    arguments = TrainingArguments(output_dir=str(folder), report_to=[], use_cpu=True, disable_tqdm=True, **options)
    own = {} if not issubclass(kind, SpmdTrainer) else {"spmd": spmd or {"ranks": 2, "policy": "class:GPT2Block"}}
    return kind(model, arguments, train_dataset=rows(48), eval_dataset=rows(8), **own)


def logged(one: Trainer) -> list[dict[str, float]]:
    names = ("loss", "grad_norm", "learning_rate", "eval_loss", "step")
    return [{name: entry[name] for name in names if name in entry} for entry in one.state.log_history]


def check(ours: Trainer, theirs: Trainer, rel: float = 1e-5) -> None:
    assert len(logged(ours)) == len(logged(theirs)) > 3
    for a, b in zip(logged(ours), logged(theirs)):
        assert a == pytest.approx(b, rel=rel)


@pytest.mark.parametrize("options, compiles, rel", [
    (dict(eval_strategy="steps", eval_steps=3), 1, 1e-5),
    (dict(gradient_accumulation_steps=4), 2, 1e-5),  # a step without an update, and one with it; the last of an epoch is short
    (dict(max_grad_norm=0.0, optim="sgd", label_smoothing_factor=0.1), 1, 1e-5),
    (dict(bf16=True, gradient_checkpointing=True), 1, 1e-2),
    (dict(optim="adafactor", max_steps=4), 1, 1e-3),  # which moves biases of keys, without a gradient, by rounding errors
], ids=["evaluated", "accumulated", "not clipped", "bf16", "adafactor"])
def test_it_trains_like_the_trainer(options, compiles: int, rel: float, tmp_path) -> None:
    ours, theirs = trainer(SpmdTrainer, tmp_path, **options), trainer(Trainer, tmp_path, **options)
    ours.train()
    theirs.train()
    check(ours, theirs, rel)
    assert ours.compiled.compiles == compiles


@pytest.mark.parametrize("first, second", [(SpmdTrainer, SpmdTrainer), (Trainer, SpmdTrainer), (SpmdTrainer, Trainer)])
def test_checkpoints_are_the_trainers(first, second, tmp_path) -> None:
    options = dict(save_strategy="steps", save_steps=5)
    whole = trainer(Trainer, tmp_path / "whole", **options)
    whole.train()
    trainer(first, tmp_path / "run", max_steps=12, **options).train()
    resumed = trainer(second, tmp_path / "run", **options)
    resumed.train(resume_from_checkpoint=str(tmp_path / "run" / "checkpoint-5"))
    check(resumed, whole)


class WithDistance(SpmdTrainer):
    """A loss of its own."""

    def compute_loss(self, model, inputs, return_outputs=False, num_items_in_batch=None):
        outputs = model(**inputs)
        loss = outputs.loss + 0.01 * model.transformer.wpe.weight.square().sum()
        return (loss, outputs) if return_outputs else loss


class Halve(TrainerCallback):
    def on_step_end(self, args, state, control, optimizer=None, **unused):
        for group in optimizer.param_groups:
            group["weight_decay"] *= 0.5


def test_overrides_and_callbacks_are_obeyed(tmp_path) -> None:
    losses = []
    for own in (SpmdTrainer, WithDistance):
        one = trainer(own, tmp_path, max_steps=3)
        one.add_callback(Halve())
        one.train()
        losses.append([entry["loss"] for entry in logged(one) if "loss" in entry])
        assert one.optimizer.param_groups[0]["weight_decay"] == pytest.approx(0.1 / 8)
    assert all(b > a + 1e-4 for a, b in zip(*losses))


def calls_backward(self, model, inputs, num_items_in_batch=None):
    loss = self.compute_loss(model, self._prepare_inputs(inputs))
    self.accelerator.backward(loss)
    return loss.detach()


def penalty(model) -> torch.Tensor:
    return 0.1 * sum(p.square().sum() for p in model.parameters())


class After:
    """A further loss, in eager PyTorch."""

    def training_step(self, model, inputs, num_items_in_batch=None):
        loss = super().training_step(model, inputs, num_items_in_batch)
        penalty(model).backward()
        return loss


class Skips:
    def training_step(self, model, inputs, num_items_in_batch=None):
        loss = super().training_step(model, inputs, num_items_in_batch)
        if self.state.global_step == 1:
            model.zero_grad()
        return loss


class Twice(After):
    """Two steps for one update; and an optimizer that create_optimizer() of the Trainer does not make."""

    def training_step(self, model, inputs, num_items_in_batch=None):
        return super().training_step(model, inputs, num_items_in_batch) + super().training_step(model, inputs, num_items_in_batch)

    def create_optimizer(self, model=None):
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=self.args.learning_rate)
        return self.optimizer


@pytest.mark.parametrize("own", [After, Skips, Twice, type("Eager", (), {"training_step": calls_backward})])
@pytest.mark.parametrize("batches", [1, 2])
@pytest.mark.sample(2)
def test_a_training_step_may_do_what_it_likes_with_gradients(own, batches: int, tmp_path) -> None:
    ours, theirs = (trainer(type("Own", (own, kind), {}), tmp_path, max_steps=3, gradient_accumulation_steps=batches)
                    for kind in (SpmdTrainer, Trainer))
    ours.train()
    theirs.train()
    check(ours, theirs, 1e-4)


def test_an_optimizer_around_another_is_stepped(tmp_path) -> None:
    """It has the other as its `optimizer`."""
    class Halving(torch.optim.Optimizer):
        def __init__(self, optimizer):
            super().__init__(optimizer.param_groups, {})
            self.optimizer = optimizer

        @torch.no_grad()
        def step(self, closure=None):
            for group in self.param_groups:
                for p in group["params"]:
                    p.grad.mul_(0.5)
            self.optimizer.step()

    ours, theirs = (trainer(kind, tmp_path, max_steps=3, optim="sgd") for kind in (SpmdTrainer, Trainer))
    for one in (ours, theirs):
        one.optimizer = Halving(torch.optim.SGD(one.model.parameters(), lr=0.1))
        one.train()
    check(ours, theirs)


class Sees(TrainerCallback):
    """Gradients between the batches of an update."""

    def __init__(self):
        self.seen: list[float] = []

    def on_substep_end(self, args, state, control, model=None, **unused):
        self.seen += [float(param.grad.norm()) for param in model.parameters()]


class Overrides:
    """Methods that run in the compiled step or beside it."""

    def training_step(self, model, inputs, num_items_in_batch=None):
        return 2 * super().training_step(model, inputs, num_items_in_batch)

    def _prepare_inputs(self, inputs):
        inputs = super()._prepare_inputs(inputs)
        return {**inputs, "input_ids": (inputs["input_ids"] + 1) % 50}

    def compute_loss_context_manager(self):
        stack = super().compute_loss_context_manager()
        stack.enter_context(torch.autocast("cpu", enabled=False))
        return stack

    def get_batch_samples(self, *args, **kwargs):
        samples, count = super().get_batch_samples(*args, **kwargs)
        return samples, count * 2

    def create_optimizer(self, model=None):
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=self.args.learning_rate)
        return self.optimizer


def test_all_other_overrides_are_obeyed(tmp_path) -> None:
    found = []
    for bases in ((Overrides, Trainer), (Overrides, SpmdTrainer)):
        one = trainer(type("Own", bases, {}), tmp_path, max_steps=3, gradient_accumulation_steps=2)
        one.add_callback(sees := Sees())
        one.train()
        found.append((one, sees.seen))
    (theirs, expected), (ours, seen) = found
    check(ours, theirs)
    assert seen == pytest.approx(expected, rel=1e-4, abs=1e-6)


def test_dropout_draws_masks_of_its_own_in_each_step(tmp_path) -> None:
    ours = trainer(SpmdTrainer, tmp_path, dropout=0.2, learning_rate=0.0, lr_scheduler_type="constant", warmup_steps=0,
                   max_steps=6)
    ours.train()
    assert len({entry["loss"] for entry in logged(ours) if "loss" in entry}) == 6


def test_what_a_compiled_step_has_in_another_way_is_an_error(tmp_path) -> None:
    with pytest.raises(ValueError, match="TrainingArguments has fp16=True\n  hint: take bf16=True"):
        trainer(SpmdTrainer, tmp_path, fp16=True)
    with pytest.raises(TypeError, match="nonsense"):
        trainer(SpmdTrainer, tmp_path, spmd={"nonsense": 0})


def test_the_saved_model_is_plain(tmp_path) -> None:
    ours = trainer(SpmdTrainer, tmp_path, max_steps=2)
    ours.train()
    ours.save_model(str(tmp_path / "saved"))
    loaded = GPT2LMHeadModel.from_pretrained(tmp_path / "saved")
    for (name, a), b in zip(loaded.named_parameters(), ours.model.parameters()):
        assert torch.equal(a, b), name
    assert json.loads((tmp_path / "saved" / "config.json").read_text())["n_layer"] == 2
    assert isinstance(ours.compiled, spmd.CompiledStep)
