"""mmengine's FlexibleRunner with our FSDPStrategy trains, saves and resumes as with its own (docs/integrations.md)."""
from __future__ import annotations

import copy
import pickle

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.distributed.fsdp.wrap import ModuleWrapPolicy

pytest.importorskip("mmengine")
pytest.importorskip("cv2")
from mmengine._strategy import SingleDeviceStrategy  # noqa: E402
from mmengine.hooks import EMAHook, Hook  # noqa: E402
from mmengine.model import BaseModel  # noqa: E402
from mmengine.registry import FUNCTIONS, MODELS, STRATEGIES  # noqa: E402
from mmengine.runner import FlexibleRunner  # noqa: E402
from torch.distributed.algorithms._checkpoint.checkpoint_wrapper import CheckpointWrapper  # noqa: E402

from spmd.integrations.mmengine import FSDPStrategy, _readable  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore")


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(16, 16)

    def forward(self, x):
        return torch.tanh(self.linear(x))


class Model(BaseModel):
    def __init__(self):
        super().__init__()
        self.first, self.blocks, self.last = nn.Linear(8, 16), nn.Sequential(Block(), Block()), nn.Linear(16, 4)

    def forward(self, x, y, mode="loss"):
        out = self.last(self.blocks(self.first(x)))
        if mode != "loss":
            return out
        return {"loss": F.cross_entropy(out, y), "accuracy": (out.argmax(1) == y).float().mean()}


class Data(torch.utils.data.Dataset):
    def __init__(self):
        generator = torch.Generator().manual_seed(1)
        self.x, self.y = torch.randn(40, 8, generator=generator), torch.randint(0, 4, (40,), generator=generator)

    def __len__(self):
        return len(self.x)

    def __getitem__(self, index):
        return self.x[index], self.y[index]


class Seen(Hook):
    def __init__(self):
        self.rows: list[list[float]] = []

    def after_train_iter(self, runner, batch_idx, data_batch=None, outputs=None):
        clips = runner.strategy.optim_wrapper.clip_grad_kwargs
        norm = runner.message_hub.get_scalar("train/grad_norm").current() if clips else 0.0
        self.rows.append([float(outputs["loss"]), float(outputs["accuracy"]), norm,
                          runner.strategy.optim_wrapper.optimizer.param_groups[0]["lr"]])


@FUNCTIONS.register_module()
def is_block(module, kind=Block):
    return isinstance(module, kind)


def train(strategy, wrapper: dict, resume: str | None = None, epochs: int = 3, load: str | None = None,
          model=None, hooks=()) -> tuple[list[list[float]], FlexibleRunner]:
    torch.manual_seed(0)
    seen = Seen()
    runner = FlexibleRunner(
        model=model or Model(), work_dir=strategy.work_dir, strategy=strategy, custom_hooks=[seen, *hooks], log_level="ERROR",
        train_dataloader={"batch_size": 8, "dataset": Data(), "sampler": {"type": "DefaultSampler", "shuffle": False},
                          "num_workers": 0, "collate_fn": {"type": "default_collate"}},
        train_cfg={"by_epoch": True, "max_epochs": epochs}, optim_wrapper=copy.deepcopy(wrapper),
        param_scheduler={"type": "ExponentialLR", "gamma": 0.9, "by_epoch": False},
        default_hooks={"checkpoint": {"type": "CheckpointHook", "interval": 1}}, resume=bool(resume), load_from=resume or load)
    runner.train()
    return seen.rows, runner


def check(ours: list, theirs: list, rel: float = 1e-5) -> None:
    assert len(ours) == len(theirs) > 0
    for a, b in zip(ours, theirs):
        assert a == pytest.approx(b, rel=rel)


SGD = {"optimizer": {"type": "SGD", "lr": 0.1, "momentum": 0.9}}


CLIPPED = {"optimizer": {"type": "AdamW", "lr": 0.01}, "clip_grad": {"max_norm": 0.5}}
ACCUMULATED = {**SGD, "accumulative_counts": 4}  # 15 batches: the last three are a step of their own


@pytest.mark.parametrize("kind, wrapper", [("full", CLIPPED), ("local", ACCUMULATED),
                                           ({"state_dict_type": "SHARDED_STATE_DICT"}, CLIPPED)], ids=lambda v: str(v)[:8])
def test_it_trains_and_resumes_like_mmengine(kind, wrapper, tmp_path) -> None:
    """The whole run; and from the first epoch's checkpoint, on other ranks and units."""
    theirs, _ = train(SingleDeviceStrategy(work_dir=str(tmp_path / "theirs")), wrapper)
    own = dict(work_dir=str(tmp_path / "ours"), state_dict_cfg=kind)
    units = {"auto_wrap_policy": ModuleWrapPolicy({Block}), "use_orig_params": True}
    ours, runner = train(FSDPStrategy(model_wrapper=units, spmd={"ranks": 2}, **own), wrapper)
    check(ours, theirs)
    saved = tmp_path / "ours" / "epoch_1.pth"
    assert saved.is_dir() == (kind != "full") and runner.strategy.compiled.steps == len(ours)
    rest, _ = train(FSDPStrategy(spmd={"ranks": 3}, **own), wrapper, resume=str(saved))
    check(rest, theirs[5:])  # in the middle of an accumulation, too, which a file of mmengine's form would lose


def test_configs_mean_what_they_do_there(tmp_path) -> None:
    """A strategy of the registry, a policy and a check by name, initial values from a checkpoint, autocast."""
    theirs, runner = train(SingleDeviceStrategy(work_dir=str(tmp_path / "theirs")), SGD, epochs=1)
    strategy = STRATEGIES.build({
        "type": "SpmdFSDPStrategy", "work_dir": str(tmp_path / "ours"), "state_dict_cfg": "full",
        "activation_checkpointing": {"check_fn": {"type": "is_block", "kind": Block}}, "spmd": {"ranks": 2}})
    ours, own = train(strategy, SGD, epochs=1)
    check(ours, theirs)
    assert sum(isinstance(m, CheckpointWrapper) for m in own.model.modules()) == 2
    amp = {"type": "AmpOptimWrapper", "dtype": "bfloat16", **SGD}
    narrow, _ = train(FSDPStrategy(work_dir=str(tmp_path / "amp"), spmd={"ranks": 2}), amp, epochs=1)
    check(narrow, theirs, rel=0.05)
    assert narrow[0][0] != pytest.approx(theirs[0][0], rel=1e-6)


def test_a_model_without_values_gets_those_of_a_checkpoint(tmp_path) -> None:
    """skip_init_weights with a model by its config, and load_from."""
    MODELS.register_module(module=Model, force=True)
    first, _ = train(FSDPStrategy(work_dir=str(tmp_path / "first"), state_dict_cfg="full", spmd={"ranks": 2}), SGD, epochs=1)
    saved = str(tmp_path / "first" / "epoch_1.pth")
    with _readable():  # which its own strategy cannot do without since PyTorch 2.6
        theirs, _ = train(SingleDeviceStrategy(work_dir=str(tmp_path / "theirs")), SGD, epochs=1, load=saved)
    strategy = FSDPStrategy(work_dir=str(tmp_path / "ours"), skip_init_weights=True, spmd={"ranks": 2})
    ours, _ = train(strategy, SGD, epochs=1, load=saved, model={"type": "Model"})
    check(ours, theirs)
    assert ours[0] != first[0]


def test_a_train_step_of_the_models_own_is_an_error(tmp_path) -> None:
    class Own(Model):
        def train_step(self, data, optim_wrapper):
            return super().train_step(data, optim_wrapper)

    with pytest.raises(TypeError, match=r"Own\.train_step does not run(.|\n)*test_mmengine(.|\n)*  hint: compute the losses"):
        train(FSDPStrategy(work_dir=str(tmp_path)), SGD, model=Own())


def test_a_hook_may_average_the_weights(tmp_path) -> None:
    """EMAHook copies the model, reads its weights after each step, and swaps them with their averages in a checkpoint."""
    hook, found = {"type": "EMAHook", "momentum": 0.1}, []
    for strategy in (FSDPStrategy(work_dir=str(tmp_path / "ours"), state_dict_cfg="full", spmd={"ranks": 2}),
                     SingleDeviceStrategy(work_dir=str(tmp_path / "theirs"))):
        _, runner = train(strategy, SGD, epochs=1, hooks=[hook])
        averages = next(one for one in runner.hooks if isinstance(one, EMAHook)).ema_model.state_dict()
        with _readable():
            saved = torch.load(f"{strategy.work_dir}/epoch_1.pth")
        found.append([averages, runner.model.state_dict(), saved["state_dict"], saved["ema_state_dict"]])
    torch.testing.assert_close(*found, rtol=1e-5, atol=1e-7)


def test_a_hook_that_changes_weights_in_folders_is_an_error(tmp_path) -> None:
    with pytest.raises(ValueError, match="as EMAHook does, and a folder(.|\n)*  hint: state_dict_cfg='full'"):
        train(FSDPStrategy(work_dir=str(tmp_path), spmd={"ranks": 2}), SGD, epochs=1, hooks=[{"type": "EMAHook"}])


def test_errors(tmp_path) -> None:
    with pytest.raises(ValueError, match="state_dict_cfg is 'half'; allowed: 'full', 'local', or a dict"):
        FSDPStrategy(work_dir=str(tmp_path), state_dict_cfg="half")
    with pytest.raises(TypeError, match="'nobody' is no function, and FUNCTIONS of mmengine has none"):
        FSDPStrategy(work_dir=str(tmp_path), model_wrapper={"auto_wrap_policy": "nobody"})
    strategy = FSDPStrategy(work_dir=str(tmp_path))
    with pytest.raises(ValueError, match="AmpOptimWrapper computes in float16\n  hint: dtype='bfloat16'"):
        train(strategy, {"type": "AmpOptimWrapper", **SGD})


def test_a_copy_of_the_model_has_its_own_train_step(tmp_path) -> None:
    _, runner = train(FSDPStrategy(work_dir=str(tmp_path), spmd={"ranks": 1}), SGD, epochs=1)
    for other in (copy.deepcopy(runner.model), pickle.loads(pickle.dumps(runner.model))):
        assert other.train_step.__self__ is other and other.train_step.__func__ is Model.train_step
