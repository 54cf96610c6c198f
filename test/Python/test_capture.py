"""What a step package says: roles, names, provenance, results; and what captures of unusual steps look like."""
from __future__ import annotations

import dataclasses
import json
import subprocess
import sys
from pathlib import Path

import gpt2
import mlp
import pytest
import torch
import torch.nn.functional as F
from safetensors import safe_open
from safetensors.torch import load_file
from spmd.capture.ops.draws import Draws
from step_interpreter import StepInterpreter
from torch import nn
from torch.utils.checkpoint import checkpoint

import spmd

ROOT = Path(__file__).parent.parent.parent


def capture_tiny(**options):
    example = gpt2.setup("tiny", steps=1, **options)
    return spmd.capture(example["train_step"], example["model"], example["optimizer"], *example["args"])


def inputs(package, kind):
    return [i for i in package.step["inputs"] if i["kind"] == kind]


def ops(package, phase=None):
    return [n["op"] for n in package.step["nodes"] if phase in (None, n["phase"])]


def check_against_eager(step, model, optimizer, batches, tolerance=0.0):
    """Captures, runs graph and eager side by side, compares every result and every parameter and buffer."""
    package = spmd.capture(step, model, optimizer, *batches[0])
    run = StepInterpreter(json.loads(package.text()), package.weights)
    names = [i["name"] for i in inputs(package, "batch")]
    for batch in batches:
        expected = step(model, optimizer, *batch)
        got = run(dict(zip(names, batch)))
        assert abs(float(got[0]) - expected.detach().item()) <= tolerance
    tensors = dict(model.named_parameters()) | dict(model.named_buffers())
    for name, value in tensors.items():
        assert torch.allclose(run.tensors()[name], value.detach(), rtol=0, atol=tolerance), name
    return package


def test_roles_of_gpt() -> None:
    package = capture_tiny()
    step = package.step
    assert step["parameters"][0] == {"name": "wte.weight", "aliases": ["lm_head.weight"], "shape": [65, 32],
                                     "dtype": "f32", "trainable": True}
    assert [i["id"] for i in step["inputs"]] == list(range(len(step["inputs"])))
    kinds = [i["kind"] for i in step["inputs"]]
    assert kinds == sorted(kinds, key=["param", "buffer", "state", "hyper", "batch", "constant"].index)
    assert [i["group"] for i in inputs(package, "hyper")] == [0, 1]
    assert {i["state"] for i in inputs(package, "state")} == {"step", "exp_avg", "exp_avg_sq"}
    assert {i["init"] for i in inputs(package, "state")} == {0.0}
    assert [(i["name"], i["batch_dim"]) for i in inputs(package, "batch")] == [("x", 0), ("y", 0)]
    block = next(m for m in step["module_tree"] if m["name"] == "h.0")
    assert block["class"] == "gpt2.Block" and block["bases"] == ["torch.nn.modules.module.Module"]
    assert block["children"] == ["h.0.ln_1", "h.0.attn", "h.0.ln_2", "h.0.mlp"]
    head = next(m for m in step["module_tree"] if m["name"] == "lm_head")
    assert head["parameters"] == ["lm_head.weight"]
    assert step["outputs"] == [{"kind": "loss", "path": "", "value": step["outputs"][0]["value"]}]


def test_composites_and_lists_stay_whole() -> None:
    package = capture_tiny()
    for op in ("spmd.sdpa.default", "spmd.sdpa_backward.default", "aten.gelu_backward.default",
               "aten.native_layer_norm_backward.default", "aten._foreach_norm.Scalar", "aten.embedding.default",
               "aten.nll_loss_backward.default", "aten._log_softmax_backward_data.default"):
        assert op in ops(package), op
    fused = [n for n in package.step["nodes"] if n["op"] == "aten._fused_adamw_.tensor_lr"]
    assert len(fused) == 2
    assert fused[0]["mutates"] == ["self", "exp_avgs", "exp_avg_sqs"] and fused[0]["results"] == []


def test_provenance_of_every_node() -> None:
    step = capture_tiny().step
    phases = [n["phase"] for n in step["nodes"]]
    assert phases == sorted(phases, key=["forward", "backward", "optimizer"].index)
    assert all(n["stack"] is not None for n in step["nodes"])
    for stack in step["stacks"]:
        assert all(frame["file"] == "gpt2.py" for frame in stack)
    source = (ROOT / "examples/gpt2.py").read_text().splitlines()

    def line(node):
        return source[step["stacks"][node["stack"]][-1]["line"] - 1]

    for op, module, text in (("spmd.sdpa.default", "h.0.attn", "scaled_dot_product_attention"),
                             ("spmd.sdpa_backward.default", "h.1.attn", "scaled_dot_product_attention"),
                             ("aten.gelu_backward.default", "h.1.mlp", "F.gelu"),
                             ("aten.ones_like.default", None, "loss.backward()"),
                             ("aten._foreach_norm.Scalar", None, "clip_grad_norm_"),
                             ("aten._fused_adamw_.tensor_lr", None, "optimizer.step()")):
        node = next(n for n in step["nodes"] if n["op"] == op)
        assert node["module"] == module and text in line(node), node


def test_same_graph_for_cuda_and_without_weights() -> None:
    """No device is left in a graph, so a CUDA target, a CPU and the meta device give the same text."""
    example = gpt2.setup("tiny", steps=1)
    arguments = [example[k] for k in ("train_step", "model", "optimizer")] + list(example["args"])
    on_cpu = spmd.capture(*arguments)
    assert spmd.capture(*arguments, device="cuda").text() == on_cpu.text()
    on_meta = gpt2.setup("tiny", steps=1, device="meta")
    without_weights = spmd.capture(on_meta["train_step"], on_meta["model"], on_meta["optimizer"], *example["args"])
    assert without_weights.text() == on_cpu.text()


def test_explicit_cuda_device_in_the_step() -> None:
    """A step that makes tensors on the GPU is captured without one."""
    def on_cuda(model, optimizer, x, y):
        scale = torch.ones(6, device="cuda")
        return mlp.train_step(lambda v: model(v) * scale, optimizer, x, y)

    def anywhere(model, optimizer, x, y):
        scale = torch.ones(6)
        return mlp.train_step(lambda v: model(v) * scale, optimizer, x, y)

    example = mlp.setup()
    first, second = (spmd.capture(step, example["model"], example["optimizer"], *example["args"]).step["nodes"]
                     for step in (on_cuda, anywhere))
    assert [{**n, "stack": 0} for n in first] == [{**n, "stack": 0} for n in second]


def test_arguments_in_any_position_and_pytree() -> None:
    def step(batch, optimizer, model, *, scale, mask=None):
        logits = model(batch["x"]) * scale
        loss = (F.cross_entropy(logits, batch["y"], reduction="none") * mask).sum()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        return {"loss": loss.item(), "logits": [logits.detach()], "scale": scale, "none": None}

    example = mlp.setup()
    x, y = example["args"]
    package = spmd.capture(step, {"x": x, "y": y}, example["optimizer"], scale=2.0, model=example["model"],
                           mask=torch.ones(8), batch_dims={"mask": None},
                           reference=[{"batch": {"x": x, "y": y}, "mask": torch.ones(8)}, ({"x": x, "y": y},)])
    assert [(i["name"], i["batch_dim"]) for i in inputs(package, "batch")] == \
        [("batch.x", 0), ("batch.y", 0), ("mask", None)]
    assert [(o["kind"], o["path"]) for o in package.step["outputs"]] == [("loss", "loss"), ("output", "logits.0")]
    assert json.loads(package.step["result_tree"]) == {"dict": [
        ["loss", {"item": 0}], ["logits", {"list": [{"output": 1}]}], ["scale", {"constant": 2.0}],
        ["none", {"constant": None}]]}
    assert package.reference["loss"].shape == (2,)


def test_reference_follows_a_schedule() -> None:
    example = mlp.setup(steps=3)
    arguments = [example[k] for k in ("train_step", "model", "optimizer")] + list(example["args"])
    package = spmd.capture(*arguments, reference=example["reference"], reference_schedule=lambda step: 0.5 ** step)
    torch.testing.assert_close(package.reference["hyper/lr/0"], torch.tensor([0.1, 0.05, 0.025], dtype=torch.float64))
    scheduler = torch.optim.lr_scheduler.LambdaLR(example["optimizer"], lambda step: 0.5 ** step)
    for number, (x, y) in enumerate(example["reference"]):
        loss = mlp.train_step(example["model"], example["optimizer"], x, y)
        assert loss.item() == package.reference["loss"][number].item()
        scheduler.step()


def test_a_step_that_returns_nothing_still_has_its_loss() -> None:
    def step(model, optimizer, x, y):
        mlp.train_step(model, optimizer, x, y)

    example = mlp.setup()
    package = spmd.capture(step, example["model"], example["optimizer"], *example["args"])
    assert [(o["kind"], o["path"]) for o in package.step["outputs"]] == [("loss", "(backward)")]
    with pytest.raises(spmd.CaptureError, match="return the loss"):
        spmd.capture(step, example["model"], example["optimizer"], *example["args"], reference=example["reference"])


def test_gradient_accumulation_within_a_step() -> None:
    def step(model, optimizer, x, y):
        total = torch.zeros(())
        for half in (slice(0, 4), slice(4, 8)):
            loss = F.cross_entropy(model(x[half]), y[half]) / 2
            loss.backward()
            total += loss.detach()
        optimizer.step()
        optimizer.zero_grad()
        return total

    example = mlp.setup()
    check_against_eager(step, example["model"], example["optimizer"], example["reference"], 3e-8)


def test_gradients_that_outlive_the_step_are_state() -> None:
    def step(model, optimizer, x, y):
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        return loss

    example = mlp.setup()
    package = check_against_eager(step, example["model"], example["optimizer"], example["reference"][:3], 3e-8)
    assert [i["of"] for i in inputs(package, "state") if i["state"] == "grad"] == \
        ["fc1.weight", "fc1.bias", "fc2.weight", "fc2.bias"]


@pytest.mark.filterwarnings("ignore:the step does not update")
def test_gradients_that_nobody_clears_leave_the_others_cleared() -> None:
    """The optimizer trains a part of the model: it clears that part's gradients, and only the others' are state."""
    example = mlp.setup()
    optimizer = torch.optim.SGD(example["model"].fc2.parameters(), lr=0.1, momentum=0.9)
    package = check_against_eager(mlp.train_step, example["model"], optimizer, example["reference"], 3e-8)
    assert [i["of"] for i in inputs(package, "state") if i["state"] == "grad"] == ["fc1.weight", "fc1.bias"]


def test_a_gradient_that_is_kept_every_other_time_is_refused() -> None:
    def step(model, optimizer, x, y):
        had = model.fc1.bias.grad is not None
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad() if had else [setattr(p, "grad", None) for p in model.fc2.parameters()]
        return loss

    example = mlp.setup()
    with pytest.raises(spmd.CaptureError, match="the gradient of 'fc1.weight' outlives a step that begins without"):
        spmd.capture(step, example["model"], example["optimizer"], *example["args"])


def test_zero_grad_first_keeps_no_gradients() -> None:
    def step(model, optimizer, x, y):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        return loss

    example = mlp.setup()
    package = check_against_eager(step, example["model"], example["optimizer"], example["reference"], 3e-8)
    assert "grad" not in {i["state"] for i in inputs(package, "state")}


def test_frozen_and_unused_parameters() -> None:
    model = mlp.MLP(12, 20, 6)
    model.fc1.weight.requires_grad_(False)
    model.extra = nn.Linear(3, 3)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    example = mlp.setup()
    with pytest.warns(UserWarning, match="does not update extra.weight, extra.bias: no gradient"):
        package = spmd.capture(mlp.train_step, model, optimizer, *example["args"])
    assert [p["trainable"] for p in package.step["parameters"]] == [False, True, True, True, True, True]
    assert {i["of"] for i in inputs(package, "state")} == {"fc1.bias", "fc2.weight", "fc2.bias"}


def test_batch_norm_and_handmade_clipping() -> None:
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.fc, self.bn, self.out = nn.Linear(12, 16), nn.BatchNorm1d(16), nn.Linear(16, 6)

        def forward(self, x):
            return self.out(F.relu(self.bn(self.fc(x)), inplace=True))

    def step(model, optimizer, x, y):
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        norm = torch.stack([p.grad.square().sum() for p in model.parameters()]).sum().sqrt()
        for p in model.parameters():
            p.grad.mul_(1 / (norm + 1))
        optimizer.step()
        optimizer.zero_grad()
        return loss

    torch.manual_seed(0)
    model = Net()
    package = check_against_eager(step, model, torch.optim.SGD(model.parameters(), lr=0.1), mlp.setup()["reference"],
                                  3e-8)
    norm = next(n for n in package.step["nodes"] if n["op"] == "aten.native_batch_norm.default")
    assert norm["mutates"] == ["running_mean", "running_var"]
    assert {n["phase"] for n in package.step["nodes"] if n["op"] in ("aten.mul_.Tensor", "aten.sqrt.default")} == \
        {"optimizer"}


def test_checkpoint_is_recomputed() -> None:
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b, self.c = nn.Linear(12, 12), nn.Linear(12, 12), nn.Linear(12, 6)

        def block(self, x):
            return F.relu(self.b(F.relu(self.a(x))))

        def forward(self, x):
            return self.c(checkpoint(self.block, x, use_reentrant=False))

    torch.manual_seed(0)
    model = Net()
    package = check_against_eager(mlp.train_step, model, torch.optim.SGD(model.parameters(), lr=0.1),
                                  mlp.setup()["reference"])
    assert ops(package).count("aten.addmm.default") == 5, "the two of the region are computed twice"


@pytest.mark.parametrize("mask", ["bool", "additive", "learned"])
def test_attention_masks(mask: str) -> None:
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.qkv = nn.Linear(12, 36)
            self.bias = nn.Parameter(torch.randn(1, 3, 8, 8) * 0.1)
            self.out = nn.Linear(12, 6)

        def forward(self, x):
            q, k, v = (t.view(1, 8, 3, 4).transpose(1, 2) for t in self.qkv(x).split(12, dim=-1))
            masks = {"bool": torch.ones(8, 8, dtype=torch.bool).tril(), "additive": torch.zeros(8, 8).fill_(-1).triu(),
                     "learned": self.bias}
            y = F.scaled_dot_product_attention(q, k, v, attn_mask=masks[mask])
            return self.out(y.transpose(1, 2).reshape(8, 12))

    torch.manual_seed(0)
    model = Net()
    if mask != "learned":
        model.bias.requires_grad_(False)
    package = check_against_eager(mlp.train_step, model, torch.optim.SGD(model.parameters(), lr=0.1),
                                  mlp.setup()["reference"], 3e-7)
    backward = next(n for n in package.step["nodes"] if n["op"] == "spmd.sdpa_backward.default")
    assert (backward["results"][3] is not None) == (mask == "learned")


def test_dropout_is_a_mask_of_drawn_numbers() -> None:
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.fc, self.drop = nn.Linear(12, 6), nn.Dropout(0.3)

        def forward(self, x):
            return self.fc(self.drop(x))

    model = Net()
    x, y = mlp.setup()["args"]
    package = spmd.capture(mlp.train_step, model, torch.optim.SGD(model.parameters(), lr=0.1), x.requires_grad_(), y)
    assert ops(package).count("spmd.philox_uniform.default") == 1
    assert [i["name"] for i in package.step["inputs"] if i["kind"] == "rng"] == ["seed", "step"]
    run = StepInterpreter(package.step, package.weights)
    loss, = run({"x": x, "y": y})
    seed, step = torch.tensor(torch.initial_seed()), torch.tensor(0)
    with Draws(seed, step).entered():
        assert loss.item() == F.cross_entropy(model(x), y).item()
    assert step == 1
    model.eval()
    evaluated = spmd.capture(mlp.train_step, model, torch.optim.SGD(model.parameters(), lr=0.1), x, y)
    assert ops(evaluated)[:2] == ["aten.t.default", "aten.addmm.default"]


def test_autocast() -> None:
    def step(model, optimizer, x, y):
        with torch.autocast(x.device.type, torch.bfloat16):
            loss = F.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        return loss

    example = mlp.setup()
    optimizer = torch.optim.SGD(example["model"].parameters(), lr=0.1)
    package = check_against_eager(step, example["model"], optimizer, example["reference"])
    assert "bf16" in {r["dtype"] for n in package.step["nodes"] for r in n["results"]}


def test_constants_of_a_closure() -> None:
    weights = torch.linspace(1, 2, 6)

    def step(model, optimizer, x, y):
        loss = F.cross_entropy(model(x) + weights, y, weight=weights) * torch.tensor([2.0, 3.0]).sum()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        return loss

    example = mlp.setup()
    package = check_against_eager(step, example["model"], example["optimizer"], example["reference"], 1e-6)
    constants = [t for k, t in package.weights.items() if k.startswith("constant/")]
    assert sum(torch.equal(t, weights) for t in constants) == 1, "used twice, kept once"
    assert len(constants) == len(inputs(package, "constant"))


def test_shared_memory_is_an_error() -> None:
    model = mlp.MLP(6, 6, 6)
    model.fc2.weight = nn.Parameter(model.fc1.weight.data)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with pytest.raises(spmd.CaptureError, match="'fc1.weight' and 'fc2.weight' share memory"):
        spmd.capture(mlp.train_step, model, optimizer, torch.randn(8, 6), torch.randint(6, (8,)))


def test_result_of_a_registered_class() -> None:
    @dataclasses.dataclass
    class Result:
        loss: torch.Tensor
        logits: torch.Tensor

    torch.utils._pytree.register_dataclass(Result)

    def step(model, optimizer, x, y):
        logits = model(x)
        return Result(finish(F.cross_entropy(logits, y), optimizer), logits.detach())

    def finish(loss, optimizer):
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        return loss

    example = mlp.setup()
    package = spmd.capture(step, example["model"], example["optimizer"], *example["args"])
    assert [o["path"] for o in package.step["outputs"]] == ["loss", "logits"]
    assert json.loads(package.step["result_tree"]) == {"tuple": [{"output": 0}, {"output": 1}]}


def test_no_absolute_paths_and_same_bytes(tmp_path: Path) -> None:
    first, second = (capture_tiny() for _ in range(2))
    assert first.text() == second.text()
    assert str(Path(torch.__file__).parent) not in first.text() and str(ROOT) not in first.text()
    first.reference = {"loss": torch.zeros(3), "batch/0/x": torch.zeros(2)}
    first.save(tmp_path / "a.step")
    for _ in range(8):  # the order of a hash map is another in each
        first.save(tmp_path / "b.step")
        for file in ("step.json", "weights.safetensors", "reference.safetensors"):
            assert (tmp_path / "a.step" / file).read_bytes() == (tmp_path / "b.step" / file).read_bytes()
    second.save(tmp_path / "a.step", weights=False)
    assert [f.name for f in (tmp_path / "a.step").iterdir()] == ["step.json"]
    assert sorted(f.name for f in tmp_path.iterdir()) == ["a.step", "b.step"]


def test_meta_model_has_no_weights_to_save(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="weights=False"):
        capture_tiny(device="meta").save(tmp_path / "a.step")
    assert list(tmp_path.iterdir()) == []


def test_only_packages_are_replaced(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "notes").touch()
    with pytest.raises(FileExistsError, match="mine' is there and is no step package"):
        capture_tiny(device="meta").save(tmp_path / "mine", weights=False)
    assert (tmp_path / "mine" / "notes").exists()


def test_gpt2_124m_is_captured_in_seconds() -> None:
    package = capture_124m()
    assert len(package.step["parameters"]) == 148
    assert sum(torch.Size(p["shape"]).numel() for p in package.step["parameters"]) == 124_439_808


def capture_124m():
    example = gpt2.setup("124m", steps=0, batch=2, device="meta")
    return spmd.capture(example["train_step"], example["model"], example["optimizer"], *example["args"])


def test_command_line(tmp_path: Path) -> None:
    script = tmp_path / "mine.py"
    script.write_text("import mlp\n\ndef factory():\n    return mlp.setup(steps=2)\n\ndef half():\n    return {}\n\n"
                      "def nothing():\n    pass\n")

    def run(*arguments):
        path = f"{ROOT / 'python-bindings'}:{ROOT / 'examples'}"
        return subprocess.run([sys.executable, "-m", "spmd.capture", *map(str, arguments)], capture_output=True,
                              text=True, env={"PYTHONPATH": path, "OMP_NUM_THREADS": "1"})

    done = run(f"{script}:factory", "-o", tmp_path / "mlp.step", "--batch-dim=x=0")
    assert done.returncode == 0, done.stderr
    with safe_open(tmp_path / "mlp.step/reference.safetensors", "pt") as file:
        assert file.metadata() == {"format": "spmd-reference", "steps": "2"}
    reference = load_file(tmp_path / "mlp.step/reference.safetensors")
    assert {"loss", "hyper/lr/0", "batch/1/y", "final/fc1.bias", "final/optimizer/momentum_buffer/fc1.bias"} <= \
        set(reference)
    failed = run(f"{script}:half", "-o", tmp_path / "no.step", "--batch-dim=x")
    assert failed.returncode == 2 and "without train_step, model, optimizer" in failed.stderr
    assert not (tmp_path / "no.step").exists()
    failed = run(f"{script}:nothing", "-o", tmp_path / "no.step")
    assert failed.returncode == 2 and "returns a NoneType, not a dict" in failed.stderr
    failed = run(f"{script}:factory", "-o", script)
    assert failed.returncode == 2 and "is there and is no step package" in failed.stderr
