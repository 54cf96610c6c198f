"""A tensor axis of the mesh: parameters placed as torch.distributed.tensor says, and steps that train as one rank does."""
from __future__ import annotations

import copy
import json
from pathlib import Path

import pytest
import torch
from torch import nn
from torch.distributed.tensor import Replicate, Shard

import spmd
from spmd.placements import placement_text


class Attention(nn.Module):
    """Queries, keys and values by a product each, as Llama has them."""

    def __init__(self, width: int, heads: int, norms: bool):
        super().__init__()
        self.heads = heads
        self.q, self.k, self.v, self.out = (nn.Linear(width, width) for _ in range(4))
        self.norm = nn.RMSNorm(width // heads) if norms else nn.Identity()

    def forward(self, x):
        q, k, v = (p(x).unflatten(-1, (self.heads, -1)).transpose(1, 2) for p in (self.q, self.k, self.v))
        y = nn.functional.scaled_dot_product_attention(self.norm(q), self.norm(k), v, is_causal=True)
        return self.out(y.transpose(1, 2).flatten(2))


class Block(nn.Module):
    def __init__(self, width: int, heads: int, dropout: float, norms: bool):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention = Attention(width, heads, norms)
        self.fc1, self.fc2 = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        return x + self.fc2(self.dropout(torch.nn.functional.gelu(self.fc1(self.norm2(x)))))


class Model(nn.Module):
    def __init__(self, width: int = 16, heads: int = 4, dropout: float = 0.0, norms: bool = False):
        super().__init__()
        self.embedding = nn.Embedding(11, width)
        self.blocks = nn.ModuleList(Block(width, heads, dropout, norms) for _ in range(2))
        self.head = nn.Linear(width, 11)

    def forward(self, x):
        x = self.embedding(x)
        for block in self.blocks:
            x = block(x)
        return self.head(x)


PLACEMENTS = {**{f"blocks.*.attention.{name}.*": Shard(0) for name in "qkv"}, "blocks.*.attention.out.weight": Shard(1),
              "blocks.*.fc1.*": Shard(0), "blocks.*.fc2.weight": Shard(1), "*": Replicate()}


def setup(**arguments):
    torch.manual_seed(0)
    model = Model(**arguments)
    return model, torch.optim.AdamW(model.parameters(), lr=1e-2)


def train_step(model, optimizer, x, y):
    loss = nn.functional.cross_entropy(model(x).flatten(0, 1), y.flatten())
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 0.5)
    optimizer.step()
    optimizer.zero_grad()
    return loss


def batches(count: int):
    generator = torch.Generator().manual_seed(1)
    for _ in range(count):
        tokens = torch.randint(11, (4, 9), generator=generator)
        yield tokens[:, :-1], tokens[:, 1:]


@pytest.mark.parametrize("mesh", [(2,), (2, 2), "replicate:2,shard:2,tensor:2"])
def test_trains_as_one_rank(mesh) -> None:
    """Losses, parameters and optimizer state are those of eager PyTorch; 2 + 2 all-reduces a block."""
    model, optimizer = setup()
    eager = copy.deepcopy(model)
    eager_optimizer = torch.optim.AdamW(eager.parameters(), lr=1e-2)
    step = spmd.compile(train_step, mesh=mesh, policy="class:Block", override_placements=PLACEMENTS)
    for x, y in batches(5):
        torch.testing.assert_close(step(model, optimizer, x, y), train_step(eager, eager_optimizer, x, y), rtol=1e-5,
                                   atol=1e-6)
    states = step.state_dict()
    for name, value in eager.state_dict().items():
        if not name.endswith("attention.k.bias"):  # its gradient is 0 but for rounding, which AdamW scales up
            torch.testing.assert_close(states[name], value, rtol=1e-3, atol=1e-4)
    with pytest.raises(spmd.RunError, match="along the tensor axis is no run of its elements"):
        step.local_shards()
    manifest = json.loads((Path(step.artifact) / "manifest.json").read_text())
    assert manifest["mesh"][-1] == {"name": "tensor", "size": 2, "tensor": True}
    plan = json.loads((Path(step.artifact) / "train_step.plan.json").read_text())
    along = [c for c in plan["commands"] if c.get("comm", "").endswith(".tensor")]
    assert len(along) == 2 * (2 + 2) + 1  # and one message of norms


@pytest.mark.parametrize("mode, meshes", [("wait", [(2,), (3, 2), (1,)]), ("beside", [(2, 2)])])
def test_checkpoints_of_a_file_for_each_rank(tmp_path, mode: str, meshes) -> None:
    """Chunks end within rows. On other meshes it is the state to the bit, and on the same one training goes on as if uninterrupted."""
    def start(mesh):
        model, optimizer = setup()
        return spmd.compile(train_step, mesh=mesh, policy="class:Block", override_placements=PLACEMENTS), model, optimizer

    step, model, optimizer = start((3, 2))
    data = list(batches(4))
    for x, y in data[:2]:
        step(model, optimizer, x, y)
    saved = {name: value.clone() for name, value in step.state_dict().items()}
    folder = step.save_checkpoint(tmp_path, kind="sharded", mode=mode)
    step.finish_checkpoint()
    index = json.loads((Path(folder) / "index.json").read_text())
    assert any(len(piece) == 6 for piece in index["tensors"]["optimizer/exp_avg/blocks.0.fc2.weight"]["pieces"])
    assert json.loads((Path(folder) / "run.json").read_text())["version"] == 4
    expected = [step(model, optimizer, x, y).item() for x, y in data[2:]]
    for mesh in meshes:
        again, model, optimizer = start(mesh)
        again(model, optimizer, *data[3])
        again.load_checkpoint(tmp_path)
        for name, value in again.state_dict().items():
            assert torch.equal(value, saved[name]), name
        losses = [again(model, optimizer, x, y).item() for x, y in data[2:]]
        if mesh == (3, 2):
            assert losses == expected
        else:
            torch.testing.assert_close(losses, expected, rtol=1e-5, atol=0)


@pytest.mark.parametrize("arguments_of_model", [{"dropout": 0.3}, {"norms": True}])
def test_what_is_whole_between_cut_products(arguments_of_model) -> None:
    """Dropout draws the same numbers on any mesh, and a weight that every head has gets the sum of their gradients."""
    losses = []
    for arguments in ({"ranks": 1}, {"mesh": (2, 2), "override_placements": PLACEMENTS}):
        model, optimizer = setup(**arguments_of_model)
        step = spmd.compile(train_step, policy="class:Block", **arguments)
        losses.append([step(model, optimizer, x, y).item() for x, y in batches(4)])
    torch.testing.assert_close(losses[1], losses[0], rtol=1e-5, atol=1e-6)


@pytest.mark.filterwarnings("ignore::spmd.Remark")
@pytest.mark.parametrize("accumulate", ["sharded", "unsharded"])
def test_gradients_that_outlive_a_step(accumulate: str) -> None:
    """Of a parameter that is whole ranks along the tensor axis have the same summands: they are read, put back and saved once."""
    class Adapted(nn.Module):
        """Frozen weights are cut, and what is trained beside them is whole."""

        def __init__(self):
            super().__init__()
            self.norm, self.fc1, self.fc2 = nn.LayerNorm(12), nn.Linear(12, 24), nn.Linear(24, 12)
            for parameter in (*self.fc1.parameters(), self.fc2.weight):
                parameter.requires_grad_(False)

        def forward(self, x):
            return self.fc2(nn.functional.gelu(self.fc1(self.norm(x))))

    def micro_step(model, optimizer, x, ends: bool):
        loss = model(x).square().mean()
        loss.backward()
        if ends:
            optimizer.step()
            optimizer.zero_grad()
        return loss

    torch.manual_seed(0)
    model = Adapted()
    eager = copy.deepcopy(model)
    optimizer, eager_optimizer = (torch.optim.SGD((p for p in of.parameters() if p.requires_grad), lr=0.5)
                                  for of in (model, eager))
    step = spmd.compile(micro_step, mesh=(2, 2), accumulate=accumulate,
                        override_placements={"fc1.*": Shard(0), "fc2.weight": Shard(1)})
    for number in range(6):
        x = torch.randn(4, 12)
        loss, wanted = step(model, optimizer, x, number % 3 == 2), micro_step(eager, eager_optimizer, x, number % 3 == 2)
        torch.testing.assert_close(loss, wanted, rtol=1e-5, atol=1e-6)
        if number == 4:
            torch.testing.assert_close(model.fc2.bias.grad, eager.fc2.bias.grad)
            for of in (model, eager):
                of.fc2.bias.grad.mul_(0.5)
    torch.testing.assert_close(step.state_dict()["fc2.bias"], eager.fc2.bias.detach())


def test_gradients_that_travel_with_those_of_activations() -> None:
    """One message along the tensor axis has rows of the batch and a gradient that has been reduced along the others."""
    class Shifted(nn.Module):
        def __init__(self):
            super().__init__()
            self.fc1, self.fc2, self.norm = nn.Linear(12, 24), nn.Linear(24, 12), nn.LayerNorm(12)
            self.shift = nn.Parameter(torch.ones(24))

        def forward(self, x):
            return self.norm(self.fc2((self.fc1(self.norm(x)) + self.shift[:, None].expand(24, 24).sum(0)).sin()))

    def step(model, optimizer, x):
        loss = (model(x) * x).sum()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        return loss

    torch.manual_seed(0)
    model = Shifted()
    eager = copy.deepcopy(model)
    optimizer, eager_optimizer = (torch.optim.SGD(of.parameters(), lr=0.01) for of in (model, eager))
    compiled = spmd.compile(step, mesh="replicate:2,shard:2,tensor:2", policy="always",
                            override_placements={"fc1.*": Shard(0), "fc2.weight": Shard(1)})
    for _ in range(3):
        x = torch.randn(8, 12)
        torch.testing.assert_close(compiled(model, optimizer, x), step(eager, eager_optimizer, x), rtol=1e-4, atol=1e-5)


def test_what_cannot_be_is_an_error_at_the_op() -> None:
    model, optimizer = setup()
    with pytest.raises(spmd.CompileError, match=r"test_tensor_axis.py:\d+: error: 'aten.native_layer_norm' needs dimension "
                       r"2 of operand 0 whole, and it is shard<2, 1, 8> over the 2 ranks of the tensor axis \(blocks.0.norm1"):
        spmd.compile(train_step, mesh=(2, 2), override_placements={"embedding.weight": Shard(1)})(
            model, optimizer, *next(batches(1)))
    with pytest.raises(spmd.CompileError, match=r"fc1.bias=shard\(0\)"):
        spmd.compile(train_step, mesh=(2, 2), override_placements={"blocks.*.fc1.weight": Shard(0),
                                                                   "blocks.*.fc2.weight": Shard(1)})(
            model, optimizer, *next(batches(1)))


def test_words() -> None:
    assert placement_text({"a.*": Shard(0), "b": Replicate(), "c": "shard(0,3)"}) == "a.*=shard(0),b=replicate,c=shard(0,3)"
    with pytest.raises(TypeError, match=r"override_placements\['a'\] is 3; expected Shard\(dim\)"):
        placement_text({"a": 3})
    with pytest.raises(ValueError, match="a mesh of one to three axes, the last of them the tensor axis"):
        spmd.compile(train_step, mesh=(1, 2, 3, 4), override_placements={})
