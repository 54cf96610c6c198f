"""A sample of the hooks of test/Kinds/hooks.py: one of each mechanism, and the tables have all hooks that the libraries offer."""
from __future__ import annotations

import sys

import pytest

from conftest import ROOT

sys.path.insert(0, str(ROOT / "test/Kinds"))
import hooks  # noqa: E402
import hooks_of_torch  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore")
# Entry points that register no hook, or that only say whether hooks may be registered.
NO_HOOKS = {"DistributedDataParallel.join_hook", "Optimizer.profile_hook_step", "disable_saved_tensors_hooks"}


@pytest.mark.parametrize("case", [
    "AccumulateGrad.register_hook | before | plain", "AccumulateGrad.register_prehook | later | plain",
    "AccumulateGrad.register_hook, in the step | before | plain", "_apply_optimizer_in_backward | before | plain",
    "register_multi_grad_hook, all | before | plain", "register_multi_grad_hook, all, in the step | before | plain",
    "Tensor.register_hook, left by the step | before | plain", "DistributedDataParallel.register_comm_hook | before | plain",
    "saved_tensors_hooks | before | checkpointed",
    "grad() of parameters, before | plain", "backward() of edges, before | plain", "backward() of edges, in the step | plain"])
def test_hooks_of_torch(case):
    found = hooks.run("torch", case)
    assert found.kind == hooks_of_torch.expected_of(case), found.text


def test_the_table_has_all_hooks_of_torch():
    listed = {name.split(", ")[0].split(" of ")[0] for name in hooks_of_torch.HOOKS}
    assert hooks_of_torch.offered() - NO_HOOKS <= listed


def test_an_error_names_the_hook_and_its_line():
    outcome = hooks.run("torch", "AccumulateGrad.register_hook | before | plain")
    assert outcome.text == ("on_nodes.make.hook is a hook of the AccumulateGrad node of parameter 'first.weight'; "
                            "a compiled step does not run this node")


@pytest.mark.parametrize("library, case", [
    ("transformers", "TrainerCallback.on_pre_optimizer_step | gradients"), ("transformers", "TrainerCallback.on_optimizer_step | looks"),
    ("transformers", "Trainer._clip_grad_norm | gradients"), ("transformers", "Trainer.compute_loss | looks"),
    ("lightning", "Callback.on_after_backward | gradients"), ("lightning", "Callback.on_before_optimizer_step | looks"),
    ("lightning", "LightningModule.clip_gradients | looks"), ("lightning", "LightningModule.on_before_backward | looks"),
    ("lightning", "Callback.on_train_batch_end | looks"), ("mmengine", "Hook.after_train_iter | looks"),
    ("mmengine", "Hook.before_train_iter | weights"), ("mmengine", "BaseModel.train_step | looks")])
@pytest.mark.sample(2)
def test_hooks_of_trainers(library: str, case: str) -> None:
    table = pytest.importorskip(f"hooks_of_{library}")
    found = hooks.run(library, case)
    assert found.kind == table.expected_of(case), found.text
