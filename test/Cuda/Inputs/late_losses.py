"""Steps of @spmd.compile whose losses are looked at late: prints what they and the parameters are. Of several processes, each
with rows of its own, only the first looks and prints.

    late_losses.py TARGET HOW RANKS [OPTION...]      each: at once; end: when all steps were taken; some: of every third one; fails: a step does;
                                                     device: the batch is taken for one of PyTorch's on the GPU, and outputs
                                                     are copied to tensors on the stand-in's
"""
import copy
import os
import pickle
import sys

import torch
import torch.nn.functional as F
from torch import nn

import spmd

target, how, ranks, *options = sys.argv[1:]
ranks, rank, world = int(ranks), int(os.environ.get("RANK", 0)), int(os.environ.get("WORLD_SIZE", 1))
if how == "device":
    import numpy as np
    from spmd.run.runtime import Trainer
    from standin_tensors import Device, Tensor
    device, copy_there, copied = Device(), Trainer.copy_output, []

    def copy_output(self, number, out):
        there = Tensor(device, np.zeros(out.shape, np.float32))
        copy_there(self, number, there, stream=device.stream)
        copied.append(number)
        out.copy_(torch.from_numpy(there.read()))

    def never(self, *arguments):
        raise AssertionError("a step with its batch on the GPU is waited for")

    Trainer.device_of, Trainer.copy_output = lambda self, batch: torch.device("cpu"), copy_output
    Trainer.results = Trainer.late_result = never
torch.manual_seed(3)
model = nn.Sequential(nn.Linear(6, 16), nn.Tanh(), nn.Linear(16, 3))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)


@spmd.compile(ranks=ranks, target=target, options=options, check_finite=how == "finite", timeout=5)
def train_step(model, optimizer, x, y):
    logits = model(x)
    loss = F.mse_loss(logits, y)
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    return {"loss": loss, "logits": logits if ranks == 1 else logits.square().mean()}  # rows of several ranks are read at once


def is_late(tensor):
    return hasattr(tensor, "_spmd_slot")


def use(number, tensor):
    """A use of each kind."""
    return (lambda: float(tensor), lambda: tensor.item(), lambda: tensor.numpy().item(), lambda: (tensor + 0.0).item(),
            lambda: copy.deepcopy(tensor).item(), lambda: pickle.loads(pickle.dumps(tensor)).item(),
            lambda: torch.stack([tensor])[0].item(), lambda: tensor.detach().clone().item(),
            lambda: sum([tensor]).item())[number % 9]()


kept, late = [], 0
try:
    for step in range(20):
        generator = torch.Generator().manual_seed(step)
        x, y = torch.randn(8, 6, generator=generator), torch.randn(8, 3, generator=generator)
        rows = slice(rank * 8 // world, (rank + 1) * 8 // world)
        result = train_step(model, optimizer, x[rows], y[rows])
        loss = result["loss"]
        late += is_late(loss)
        assert loss.shape == () and loss.dtype == torch.float32 and result["logits"].shape == ((8, 3) if ranks == 1 else ())
        if rank:
            continue
        if how in ("each", "fails", "finite", "device"):
            kept.append(use(step, loss))
            assert not is_late(loss) and type(loss) is torch.Tensor
        elif how == "end" or step % 3 == 0:
            kept.append(loss)
        if step == 11 and how == "some":
            kept.append(result["logits"].sum())
            torch.save(model.state_dict(), "/dev/null")
except (RuntimeError, spmd.StateLostError) as error:
    said = "error " + str(error).splitlines()[0]
    try:
        model[0].weight.sum()
    except spmd.StateLostError:
        said += "\nlost"
    os.write(1, (said + "\n").encode())
    sys.exit()
if rank:
    sys.exit()
for loss in kept:
    print("loss", float(loss).hex())
print("late" if late else "copied" if how == "device" and copied == [0, 1] * 20 else "read at once", file=sys.stderr)
print("sum", sum(parameter.detach().double().abs().sum().item() for parameter in model.parameters()).hex())
train_step.reset()
