"""A DeviceMesh that a step makes when it first needs it: made once, and kept where the step keeps it."""
from __future__ import annotations

import pytest
import torch
import torch.distributed as dist
import torch.nn.functional as F
from stand_ins import compiler  # noqa: F401
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
from torch.testing._internal.distributed.fake_pg import FakeStore

import spmd


@pytest.fixture(autouse=True)
def group():
    dist.init_process_group("fake", rank=1, world_size=4, store=FakeStore())
    yield
    dist.destroy_process_group()


class Dims:
    """Meshes as torchtitan makes them."""

    def __init__(self) -> None:
        self.world: DeviceMesh | None = None
        self.parts: dict[str, DeviceMesh] = {}
        self.whole: dict[str, DeviceMesh | int] = {"size": 4}
        self.built = False

    def build(self) -> DeviceMesh:
        self.world = init_device_mesh("cpu", (4,), mesh_dim_names=("world",))
        cut = self.world._unflatten(0, (2, 2), ("replicate", "shard"))
        self.parts = {"replicate": cut["replicate"], "shard": cut["shard"], "loss": cut["replicate", "shard"]._flatten("loss")}
        self.whole["cut"] = cut
        return self.world

    def get(self, name: str) -> DeviceMesh:
        if self.world is None:
            self.build()
        return self.parts[name]


class Trainer:
    def __init__(self, make=lambda trainer: trainer.dims.get("shard")) -> None:
        torch.manual_seed(0)
        self.dims, self.make = Dims(), make
        self.model = torch.nn.Linear(4, 2)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1)

    def step(self, x, y):
        mesh = self.make(self)
        loss = F.mse_loss(self.model(x), y) / mesh.size() + 0 * mesh.get_local_rank()
        loss.backward()
        self.optimizer.step()
        self.optimizer.zero_grad()
        return loss


BATCH = torch.ones(4, 4), torch.zeros(4, 2)


def check(trainer: Trainer, **options) -> None:
    twin = Trainer(trainer.make)
    step = spmd.compile(trainer.step, ranks=2, launcher="none", **options)
    for _ in range(3):
        torch.testing.assert_close(step(*BATCH), twin.step(*BATCH).detach())
    torch.testing.assert_close(trainer.model.state_dict(), twin.model.state_dict())


def test_meshes_are_made_in_the_first_step(compiler) -> None:  # noqa: F811
    trainer = Trainer()
    check(trainer)
    dims = trainer.dims
    assert dims.world.mesh.tolist() == [0, 1, 2, 3] and dims.whole["cut"].mesh.tolist() == [[0, 1], [2, 3]]
    assert {name: (mesh.mesh.tolist(), mesh.get_local_rank()) for name, mesh in dims.parts.items()} == {
        "replicate": ([1, 3], 0), "shard": ([0, 1], 1), "loss": ([0, 1, 2, 3], 1)}
    assert all(type(mesh._rank_map) is torch.Tensor for mesh in dims.parts.values())
    assert len(compiler.read_text().splitlines()) == 1, "compiled once"


def test_a_mesh_of_a_tensor(compiler) -> None:  # noqa: F811
    check(Trainer(lambda trainer: DeviceMesh("cpu", torch.arange(4).view(2, 2).t(), mesh_dim_names=("a", "b"))["b"]))
    trainer = Trainer()
    trainer.make = lambda trainer: DeviceMesh("cpu", trainer.model.weight.detach()[:, 0].long())
    with pytest.raises(spmd.CaptureError, match="makes a DeviceMesh from a tensor with data-dependent values\n"):
        spmd.compile(trainer.step, ranks=2, launcher="none")(*BATCH)


def test_a_dict_of_numbers_in_the_place_of_meshes_is_a_side_effect() -> None:
    def make(trainer: Trainer) -> DeviceMesh:
        mesh = trainer.dims.get("shard")
        trainer.dims.parts = {"count": 1}
        return mesh
    with pytest.raises(spmd.CaptureError, match=r"the step changes .*dims\.parts.*: Python code runs only once"):
        spmd.compile(Trainer(make).step, ranks=2, launcher="none")(*BATCH)


@pytest.mark.parametrize("name, other", [("world", 3), ("built", True)])
def test_a_number_beside_meshes_is_written(name: str, other: object) -> None:
    def make(trainer: Trainer) -> DeviceMesh:
        mesh = trainer.dims.get("shard")
        setattr(trainer.dims, name, other)
        return mesh
    check(trainer := Trainer(make))
    assert getattr(trainer.dims, name) == other


def test_a_number_that_a_mesh_takes_the_place_of_is_one(compiler) -> None:  # noqa: F811
    trainer = Trainer()
    trainer.dims.built = 7

    def make(trainer: Trainer) -> DeviceMesh:
        trainer.dims.built = trainer.dims.get("shard")
        return trainer.dims.get("shard")
    trainer.make = make
    with pytest.raises(spmd.CaptureError, match=r"the step changes '.*dims\.built': Python code runs only once"):
        spmd.compile(trainer.step, ranks=2, launcher="none")(*BATCH)
