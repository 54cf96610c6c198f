"""Training in one of several processes, for test_processes.py: python process_cases.py FOLDER CASE…

Runs each case and writes what it gives to FOLDER/RANK.json. Started alone it gives what RANKS threads give.
"""
from __future__ import annotations

import json
import os
import sys
import warnings
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

import spmd

FOLDER = Path(sys.argv[1]) if len(sys.argv) > 1 else Path()
if "HOSTS" in os.environ:  # this one is taken for several
    first = os.environ.get("OMPI_COMM_WORLD_RANK") or os.environ.get("PMI_RANK")
    os.environ["SPMD_HOST"] = str(int(first) % int(os.environ["HOSTS"]))
    os.environ["XDG_CACHE_HOME"] += os.environ["SPMD_HOST"]

WORLD = int(os.environ.get("WORLD_SIZE") or os.environ.get("OMPI_COMM_WORLD_SIZE") or os.environ.get("PMI_SIZE") or 1)
RANK = int(os.environ.get("RANK") or os.environ.get("OMPI_COMM_WORLD_RANK") or os.environ.get("PMI_RANK") or 0)
RANKS = int(os.environ["RANKS"])  # of the compiled step


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.norm = nn.Embedding(16, 8), nn.BatchNorm1d(8)
        self.layers = nn.ModuleList(nn.Linear(8, 8) for _ in range(2))
        self.head = nn.Linear(8, 16)

    def forward(self, x):
        x = self.norm(self.embed(x))
        for layer in self.layers:
            x = F.dropout(x + F.gelu(layer(x)), 0.1, self.training)
        return self.head(x)


def rows(*tensors, sizes=None):
    """This process's rows of global tensors; `sizes` of all processes, by default as equal as they can be."""
    if WORLD == 1:
        return tensors
    return tuple((t.split(sizes) if sizes else t.tensor_split(WORLD))[RANK] for t in tensors)


def batch(number, count=8):
    generator = torch.Generator().manual_seed(number)
    x = torch.randint(0, 16, (count,), generator=generator)
    return x, (5 * x + 3) % 16


def make(seed=3, device="cpu", **options):
    torch.manual_seed(seed)
    with torch.device(device):
        model = Net()
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.02)

    @spmd.compile(ranks=RANKS if WORLD == 1 else options.pop("ranks", None), **options)
    def train_step(x, y, smoothing=0.0):
        loss = F.cross_entropy(model(x), y, label_smoothing=smoothing)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        return loss

    return model, optimizer, train_step


def bits(model):
    return {name: np.asarray(t.detach()).tobytes().hex() for name, t in model.state_dict().items()}


def trains():
    """Dropout, batch norm, a schedule, uneven batches down to a rank without a row, eval, state read by one rank only and
    loaded by all; each process begins with weights and a seed of its own."""
    model, optimizer, step = make(seed=3 + RANK, policy="class:Linear")
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, 2, 0.7)
    losses = []
    for number in range(4):
        losses.append(step(*rows(*batch(number))).item())
        schedule.step()
        if number == 1 and "SPMD_HOST" in os.environ:  # on several hosts all read together
            step.sync()
        if number == 1 and RANK == 0:
            torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, FOLDER / "saved.pt")
    losses.append(step(*rows(*batch(4, 5))).item())
    losses.append(step(*rows(*batch(4, 5), sizes=[5] + [0] * (WORLD - 1))).item())
    norm = float(model.head.weight.norm())
    model.eval()
    losses.append(step(*rows(*batch(6))).item())
    model.train()
    saved = torch.load(FOLDER / "saved.pt")
    model.load_state_dict(saved["model"])
    optimizer.load_state_dict(saved["optimizer"])
    losses += [step(*rows(*batch(number))).item() for number in range(7, 9)]
    return {"losses": losses, "norm": norm, "bits": bits(model), "compiles": step.compiles, "rng": step.rng}


def scatters():
    """Gradients of several calls, added up across by the one that updates; one rank reads them before, all write them, and
    a checkpoint goes on from the middle."""
    def start():
        torch.manual_seed(3)
        model = Net()
        optimizer = torch.optim.AdamW(model.parameters(), lr=0.02)

        @spmd.compile(mesh="replicate:2,shard:2", policy="class:Linear", accumulate="scattered")
        def train_step(x, y, ends: bool):
            loss = F.cross_entropy(model(x), y)
            (loss / 3).backward()
            if ends:
                nn.utils.clip_grad_norm_(model.parameters(), 0.5)
                optimizer.step()
                optimizer.zero_grad()
            return loss

        return model, train_step

    def halve(model):
        with torch.no_grad():
            model.head.weight.grad.mul_(0.5)

    model, step = start()
    losses, norms = [], []
    for number in range(6):
        losses.append(step(*rows(*batch(number)), number % 3 == 2).item())
        if number == 1:
            norms.append(float(model.head.weight.grad.norm()) if RANK == 0 else 0)
        if number == 3:
            step.save_checkpoint(FOLDER / "scattered", kind="sharded")
            norms.append(float(model.head.weight.grad.norm()))
        if number == 4:
            halve(model)
    other, again = start()
    again.load_checkpoint(FOLDER / "scattered")
    for number in range(4, 6):
        losses.append(again(*rows(*batch(number)), number % 3 == 2).item())
        if number == 4:
            halve(other)
    return {"losses": losses, "norms": norms if RANK == 0 else [], "bits": [bits(model), bits(other)]}


def initializes():
    """A model on the meta device everywhere; and one that only the first process has, as with sync_module_states."""
    found = []
    for device in ("meta", "cpu" if RANK == 0 else "meta"):
        model, _, step = make(seed=3 + RANK, device=device)
        losses = [step(*rows(*batch(number))).item() for number in range(2)]
        if "SPMD_HOST" in os.environ:
            step.sync()
        found.append((losses, bits(model)))
    return found


def checkpoints():
    """Saved by all, gone on with by another training of all, and by the one that saved; a schedule along."""
    losses, kinds = [], ("full", "sharded")
    model, optimizer, step = make(policy="class:Linear")
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, 2, 0.7)

    def run(train_step, optimizer, schedule, first, last):
        found = []
        for number in range(first, last):
            found.append(train_step(*rows(*batch(number))).item())
            schedule.step()
        return found

    run(step, optimizer, schedule, 0, 3)
    for kind in kinds:
        step.save_checkpoint(FOLDER / kind, kind=kind, objects={"schedule": schedule})
    losses.append(run(step, optimizer, schedule, 3, 6))
    for kind in kinds:
        _, fresh, other = make(seed=7, policy="class:Embedding")
        anew = torch.optim.lr_scheduler.StepLR(fresh, 2, 0.7)
        assert other.load_checkpoint(FOLDER / kind, objects={"schedule": anew}) == 3
        again = run(other, fresh, anew, 3, 6)
        assert np.allclose(again, losses[0], rtol=1e-5, atol=0), (again, losses[0])
    step.load_checkpoint(FOLDER / "sharded", objects={"schedule": schedule})
    step.save_checkpoint(FOLDER / "beside", kind="sharded", mode="beside", objects={"schedule": schedule})
    if WORLD > 1:
        assert "has a file for each rank\n  hint: kind sharded" in raised(lambda: step.save_checkpoint(FOLDER / "f", mode="beside"))
    losses.append(run(step, optimizer, schedule, 3, 6))
    step.finish_checkpoint()
    step.load_checkpoint(FOLDER / "beside", objects={"schedule": schedule})
    losses.append(run(step, optimizer, schedule, 3, 6))
    assert losses[0] == losses[1] == losses[2]
    return {"losses": losses, "files": sorted(p.name for p in (FOLDER / "sharded/step-00000003").glob("rank*"))}


def looks():
    """The first process writes into the model for all; the others have nothing of a state dict, and ranks of their own."""
    model, _, step = make(policy="class:Linear")
    step(*rows(*batch(0)))
    with step.unshard_params("head", rank0_only=True), torch.no_grad():
        if RANK == 0:
            model.head.weight.mul_(2)
    with step.unshard_params(writeback=False, rank0_only=True), torch.no_grad():
        if RANK == 0:
            model.head.weight.zero_()
    loss = step(*rows(*batch(1))).item()
    full, sharded = step.state_dict(rank0_only=True), step.state_dict("sharded")
    assert bool(full) == (RANK == 0)
    held = {shard.rank for shards in sharded.values() for shard in shards}
    assert held <= set(range(RANK * RANKS // WORLD, (RANK + 1) * RANKS // WORLD)), held
    step.sync()
    return {"loss": loss, "bits": bits(model)}


def global_batch():
    model, _, step = make(batch="global")
    losses = [step(*batch(number)).item() for number in range(3)]
    return {"losses": losses, "bits": bits(model)}


def sizes():
    """One program for batches of several sizes, of each rank's rows and of a batch that all processes have; what cannot be
    is refused on all alike."""
    result, said = {}, {}
    for view, how in (("local", "rows"), ("global", "global"), ("local", "global")):
        model, _, step = make(view=view, batch=how, dynamic_batch=8)
        losses = [step(*(rows(*batch(number, count)) if how == "rows" else batch(number, count))).item()
                  for number, count in enumerate((6, 8, 4, 6))]
        result[f"{view} {how}"] = {"losses": losses, "compiles": step.compiles, "bits": bits(model)}
        if WORLD > 1 and how == "rows":
            said["rows differ"] = raised(lambda: step(*rows(*batch(7, 8), sizes=[3, 5])))
            result["goes on"] = step(*rows(*batch(8, 4))).item()
        elif view == "local" and how == "rows":
            result["goes on"] = step(*batch(8, 4)).item()
    if WORLD > 1:
        _, _, step = make(dynamic_batch=8)
        said["filled up"] = raised(lambda: step(*rows(*batch(0, 6))))
    return result | {"said": said}


def evaluates():
    """A second compiled step over the same model, one process that starts anew, one that evaluates in eager."""
    model, _, step = make()

    @spmd.compile(ranks=RANKS if WORLD == 1 else None)
    def evaluate(x, y):
        return F.cross_entropy(model(x), y)

    losses = []
    for number in range(3):
        losses.append(step(*rows(*batch(number))).item())
        model.eval()
        losses.append(evaluate(*rows(*batch(number + 10))).item())
        if RANK == 0:
            with torch.no_grad():
                model(batch(number)[0])
        model.train()
        if number == 1 and RANK == 0:
            step.reset()
    return {"losses": losses, "bits": bits(model)}


def local_view():
    model, _, step = make(view="local")
    losses = [step(*rows(*batch(number))).item() for number in range(3)]
    return {"losses": losses, "bits": bits(model)}


def loaded():
    """An artifact that one process saved, loaded by all."""
    model, _, step = make()
    losses = [step(*rows(*batch(0))).item()]
    artifact = FOLDER / "saved.spmd"
    if RANK == 0:
        step.save(artifact)
    losses.append(step(*rows(*batch(1))).item())  # when it is saved
    with spmd.load(artifact) as trainer:
        again = trainer.step(*rows(*batch(1)))
        bias = trainer.read("param", "head.bias")
        if RANK == 0:
            trainer.save_parameters(FOLDER / "saved.safetensors")
        trainer.step(*rows(*batch(2)))
    return {"losses": losses, "same": float(again) == losses[-1], "bias": bias.tobytes().hex()}


class Taker:
    """Takes its microbatches by itself, as many as it says."""

    def __init__(self, **options):
        torch.manual_seed(3)
        self.model, self.microbatches = Net(), 2
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=0.02)
        self.step = spmd.compile(self.take, ranks=RANKS if WORLD == 1 else None, **options)

    def take(self, data):
        total = torch.zeros(())
        for _ in range(self.microbatches):
            x, y = next(data)
            loss = F.cross_entropy(self.model(x), y) / self.microbatches
            loss.backward()
            total += loss.detach()
        self.optimizer.step()
        self.optimizer.zero_grad()
        return total


def taken(count, whole=False, first=0):
    """An iterator over this process's rows; the last two batches are smaller."""
    for number in range(first, first + count):
        both = batch(number, 8 if number < first + count - 2 else 4)
        yield both if whole else rows(*both)


def takes():
    """Microbatches from an iterator: own rows of either view, the whole batch, a number of them that changes, and an end in the
    middle of a step."""
    result = {}
    for view, how in (("global", "rows"), ("local", "rows"), ("global", "global")):
        taker = Taker(view=view, batch=how)
        data = taken(7, how == "global")
        losses = [taker.step(data).item() for _ in range(2)]
        taker.microbatches = 1
        losses.append(taker.step(data).item())
        taker.microbatches = 3
        ended = raised(lambda: taker.step(data))
        losses += [taker.step(taken(3, how == "global", 20)).item() for _ in range(2)]
        result[f"{view} {how}"] = {"losses": losses, "ended": ended, "left": len(list(data)), "compiles": taker.step.compiles,
                                   "bits": bits(taker.model)}
    return result


def takes_apart():
    """One process has fewer batches than the other, or takes fewer, or batches of another form."""
    taker = Taker()
    losses, said = [taker.step(taken(2)).item()], {}
    data = taken(3 if RANK == 1 else 4)
    losses.append(taker.step(data).item())
    said["end"] = raised(lambda: taker.step(data))
    losses.append(taker.step(taken(2, first=9)).item())
    taker.microbatches = 1 if RANK == 1 else 2
    said["count"] = raised(lambda: taker.step(taken(2)))
    taker.microbatches = 2
    losses.append(taker.step(taken(2, first=9)).item())
    said["form"] = raised(lambda: taker.step(iter([(x, y, 1) if RANK == 1 else (x, y) for x, y in taken(2)])))
    losses.append(taker.step(taken(2, first=9)).item())
    return {"said": said, "losses": losses}


def raised(body):
    try:
        body()
    except Exception as error:  # what a user sees of it
        return f"{type(error).__name__}: {error}"
    return "nothing"


def refused():
    """What processes do differently is an error on all of them, and training goes on after it."""
    model, optimizer, step = make()
    said, losses = {}, []
    group = optimizer.param_groups[0]
    other = 0.5 if RANK == 1 else 0.25

    def good(number):
        losses.append(step(*rows(*batch(number))).item())

    good(0)
    group["lr"] = other
    said["lr"] = raised(lambda: step(*rows(*batch(1))))
    group["lr"], group["weight_decay"] = 0.02, other
    said["weight_decay"] = raised(lambda: step(*rows(*batch(1))))
    group["weight_decay"] = 0.01
    said["value"] = raised(lambda: step(*rows(*batch(1)), smoothing=other))
    said["shape"] = raised(lambda: step(*(t[:, None] if RANK == 1 else t for t in rows(*batch(1)))))
    said["ids"] = raised(lambda: step(*(t + 99 * (RANK == 1) for t in rows(*batch(1)))))
    good(1)
    before = model.head.bias.detach().clone()
    if RANK == 1:
        with torch.no_grad():
            model.head.bias += 1
    said["write"] = raised(lambda: step(*rows(*batch(2))))
    with torch.no_grad():
        model.head.bias.copy_(before)
    good(2)
    said["rank"] = raised(lambda: make(ranks=2 * WORLD + 1)[2](*rows(*batch(0))))
    return {"said": said, "losses": losses}


def warned():
    """Equal rows in all processes."""
    _, _, step = make()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        step(*batch(0, 2))
    _, _, strict = make()
    strict.training_state.refuses_equal_rows = True  # as the trainers of other libraries have it
    return [str(w.message) for w in caught if issubclass(w.category, spmd.Remark)], raised(lambda: strict(*batch(0, 2))), \
        raised(lambda: strict(*rows(*batch(0))))


def dies():
    """One of them ends between two steps."""
    _, _, step = make(timeout=20)
    step(*rows(*batch(0)))
    if RANK == 1:
        os._exit(7)
    return raised(lambda: step(*rows(*batch(1))))


def alone():
    """On several hosts a process that reads alone is told so."""
    model, _, step = make(timeout=1)
    step(*rows(*batch(0)))
    return raised(lambda: model.head.weight.norm()) if RANK == 0 else None


def run(cases):
    result = {name: globals()[name]() for name in cases}
    (FOLDER / f"{RANK}.json").write_text(json.dumps(result))


if __name__ == "__main__":
    torch.set_num_threads(1)
    run(sys.argv[2:])
