"""The code on docs/python.md runs as it stands there, and does what eager PyTorch does."""
from __future__ import annotations

import copy
import re

import gpt2
import torch
import torch.nn.functional as F
from stand_ins import compiler  # noqa: F401
from torch.distributed.fsdp.wrap import ModuleWrapPolicy

from conftest import ROOT


def test_the_code_of_the_page_runs(compiler, tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "docs/python.md").read_text(), re.DOTALL)
    assert len(blocks) >= 2
    example = gpt2.setup("tiny", steps=3)
    model, optimizer = example["model"], example["optimizer"]
    twin, twin_optimizer = copy.deepcopy((model, optimizer))
    schedulers = [torch.optim.lr_scheduler.ExponentialLR(o, 0.5) for o in (optimizer, twin_optimizer)]
    data = [(x, y.clamp_min(0)) for x, y in example["reference"]]
    names = {"torch": torch, "F": F, "copy": copy, "ModuleWrapPolicy": ModuleWrapPolicy, "Block": gpt2.Block,
             "model": model,
             "optimizer": optimizer, "data": data, "scheduler": schedulers[0], "x_test": data[0][0],
             "path": tmp_path / "model.pt"}
    exec("\n".join(blocks), names)
    for x, y in data:
        names["train_step"].train_step(twin, twin_optimizer, x, y)
        schedulers[1].step()
    assert names["distill"].steps == 3 and names["distill"].compiles == 1
    saved = torch.load(tmp_path / "checkpoint.pt")
    for name, value in twin.state_dict().items():
        if name not in example["zero_gradient"]:
            torch.testing.assert_close(saved["model"][name], value, rtol=0, atol=1e-6)
    assert saved["optimizer"]["state"][0]["step"] == 3 and names["train_step"].steps == 4
    last = torch.load(tmp_path / "model.pt", weights_only=False).state_dict()
    torch.testing.assert_close(last, model.state_dict(), rtol=0, atol=0)
    assert not torch.equal(last["lm_head.weight"], saved["model"]["lm_head.weight"])
