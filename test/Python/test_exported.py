"""Files of torch.export, saved by stock PyTorch, become training steps that train as the exported modules do."""
from __future__ import annotations

import copy
from pathlib import Path

import pytest
import spmd
import torch
import torch.nn.functional as F
from safetensors.torch import save_file
from spmd.capture.__main__ import main
from step_check import run, tool
from torch.utils.checkpoint import checkpoint

transformers = pytest.importorskip("transformers")
STEPS = 3


class Net(torch.nn.Module):
    """Convolution and batch norm, and what a file has regions for: a checkpoint, no_grad, autocast."""

    def __init__(self) -> None:
        super().__init__()
        self.conv, self.norm = torch.nn.Conv2d(3, 4, 3, padding=1), torch.nn.BatchNorm2d(4)
        self.head = torch.nn.Linear(4 * 6 * 6, 5)
        self.scale = torch.tensor([1.0, 0.5, 2.0, 1.5, 1.0])  # a constant that the export lifts
        self.register_buffer("calls", torch.zeros(()), persistent=False)

    def forward(self, x):
        self.calls.add_(1)
        with torch.no_grad():
            center = x.mean()
        y = checkpoint(lambda t: self.norm(self.conv(t)).relu(), x - center, use_reentrant=False)
        with torch.autocast("cpu", torch.bfloat16):
            inner = y.flatten(1) @ y.flatten(1).T
        return {"logits": self.head(y.flatten(1)) * self.scale + inner.float().mean() * self.calls}


def gpt2() -> torch.nn.Module:
    return transformers.GPT2LMHeadModel(transformers.GPT2Config(
        n_layer=2, n_head=2, n_embd=16, vocab_size=64, n_positions=16, resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0,
        bos_token_id=0, eos_token_id=0))


def llama() -> torch.nn.Module:
    return transformers.LlamaForCausalLM(transformers.LlamaConfig(
        num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2, hidden_size=16, intermediate_size=32,
        vocab_size=64, max_position_embeddings=16, tie_word_embeddings=False, bos_token_id=0, eos_token_id=0))


def text_batches(rows: int) -> list[dict[str, torch.Tensor]]:
    draw = torch.Generator().manual_seed(1)
    rows_of = [torch.randint(64, (rows, 9), generator=draw) for _ in range(STEPS)]
    return [{"input_ids": r[:, :-1].contiguous(), "labels": r[:, 1:].contiguous()} for r in rows_of]


def image_batches(rows: int) -> list[dict[str, torch.Tensor]]:
    draw = torch.Generator().manual_seed(1)
    return [{"x": torch.randn(rows, 3, 6, 6, generator=draw), "labels": torch.randint(5, (rows,), generator=draw)}
            for _ in range(STEPS)]


def write_batches(path: Path, batches: list[dict[str, torch.Tensor]]) -> None:
    save_file({f"batch/{i}/{name}": t for i, batch in enumerate(batches) for name, t in batch.items()}, path)


def train_eagerly(model: torch.nn.Module, batches: list[dict[str, torch.Tensor]], **call) -> list[float]:
    """The losses of the module that was exported, trained as --optimizer=AdamW,lr=1e-2 says."""
    optimizer, losses = torch.optim.AdamW(model.parameters(), lr=1e-2), []
    for batch in batches:
        logits = model(**{n: t for n, t in batch.items() if n != "labels"}, **call)["logits"]
        loss = F.cross_entropy(logits.flatten(0, -2), batch["labels"].flatten())
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        losses.append(loss.item())
    return losses


def capture_file(folder: Path, *options: str) -> None:
    """The command of the documents, in this process."""
    assert main([str(folder / "m.pt2"), "--loss=logits:cross_entropy", "--optimizer=AdamW,lr=1e-2",
                 f"--reference={folder / 'b.safetensors'}", "-o", str(folder / "m.step"), *options]) == 0


def check_on_ranks(folder: Path, policy: str, units: str) -> None:
    """spmd-run compares with what eager made of the file; the units are those of the file's module stack."""
    for ranks in (1, 2, 4):
        artifact = folder / f"{ranks}.spmd"
        planned = run(tool("spmd-compile"), folder / "m.step", f"--ranks={ranks}", f"--policy={policy}", "-o", artifact)
        assert units in planned
        assert "passed" in run(tool("spmd-run"), artifact, "--check")


@pytest.mark.parametrize("make, block, parameters", [(gpt2, "GPT2Block", 28), (llama, "LlamaDecoderLayer", 21)])
def test_language_models_train_to_the_losses_of_what_was_exported(make, block, parameters, tmp_path) -> None:
    torch.manual_seed(0)
    model, batches = make().train(), text_batches(4)
    exported = torch.export.export(model, (), {"input_ids": batches[0]["input_ids"], "use_cache": False})
    torch.export.save(exported, tmp_path / "m.pt2")
    write_batches(tmp_path / "b.safetensors", batches)
    capture_file(tmp_path)
    layers = "transformer.h.0 to transformer.h.1" if make is gpt2 else "model.layers.0 to model.layers.1"
    check_on_ranks(tmp_path, f"class:{block}", layers)
    with spmd.load(tmp_path / "2.spmd") as trainer:
        losses = [float(trainer.step(**batch)) for batch in batches]
    torch.testing.assert_close(losses, train_eagerly(model, batches, use_cache=False), rtol=1e-4, atol=0)


def test_a_convolution_net_with_an_open_batch(tmp_path) -> None:
    torch.manual_seed(0)
    model, batches = Net().train(), image_batches(8)
    exported = torch.export.export(model, (torch.randn(4, 3, 6, 6),),
                                   dynamic_shapes={"x": {0: torch.export.Dim("batch", min=2, max=64)}})
    torch.export.save(exported, tmp_path / "m.pt2")
    write_batches(tmp_path / "b.safetensors", batches)
    capture_file(tmp_path, "--batch-size=8", "--zero-gradient=conv.bias")  # which the norm takes out again
    check_on_ranks(tmp_path, "class:Conv2d", "conv")
    with spmd.load(tmp_path / "2.spmd") as trainer:
        losses = [float(trainer.step(**batch)) for batch in batches]
    torch.testing.assert_close(losses, train_eagerly(model, batches), rtol=1e-3, atol=0)


def train_step(model, optimizer, x, labels):
    loss = F.cross_entropy(model(x)["logits"], labels)
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    return loss


@pytest.mark.parametrize("as_module", [False, True])
def test_a_program_in_the_place_of_the_model(as_module) -> None:
    torch.manual_seed(0)
    model, (batch, *_) = Net().train(), image_batches(4)
    program = torch.export.export(copy.deepcopy(model), (batch["x"],))
    program = program.module() if as_module else program
    optimizer = torch.optim.SGD(program.parameters(), lr=0.1)
    before = copy.deepcopy(dict(program.named_parameters()))
    package = spmd.capture(train_step, program, optimizer, *batch.values(), reference=[tuple(batch.values())] * 2)
    assert [p["name"] for p in package.step["parameters"]] == [name for name, _ in model.named_parameters()]
    assert {m["name"]: m["class"].rpartition(".")[2] for m in package.step["module_tree"]} == {
        "": "Net", "conv": "Conv2d", "norm": "BatchNorm2d", "head": "Linear"}
    convolutions = [node for node in package.step["nodes"] if node["op"].startswith("aten.convolution")]
    assert {node["module"] for node in convolutions} == {"conv"}
    lines = [package.step["stacks"][node["stack"]][-1] for node in convolutions]
    assert {(line["file"], line["function"]) for line in lines} == {("test_exported.py", "forward")}
    torch.testing.assert_close(dict(program.named_parameters()), before, rtol=0, atol=0)
    eager = torch.optim.SGD(model.parameters(), lr=0.1)
    losses = [train_step(model, eager, *batch.values()).item() for _ in range(2)]
    torch.testing.assert_close(package.reference["loss"].tolist(), losses, rtol=1e-6, atol=0)


class Tied(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embed, self.head = torch.nn.Embedding(8, 4), torch.nn.Linear(4, 8, bias=False)
        self.head.weight = self.embed.weight
        self.drop = torch.nn.Dropout(0.5)

    def forward(self, x):
        return {"logits": self.head(self.drop(self.embed(x)))}


def test_tied_parameters_and_dropout() -> None:
    program = torch.export.export(Tied().train(), (torch.zeros(4, 3, dtype=torch.int64),))
    optimizer = torch.optim.SGD(program.parameters(), lr=0.1)  # has both of the file's objects
    x = torch.zeros(4, 3, dtype=torch.int64)

    def step(model, optimizer, x):
        loss = model(x)["logits"].square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        return loss
    package = spmd.capture(step, program, optimizer, x)
    assert [(p["name"], p["aliases"]) for p in package.step["parameters"]] == [("embed.weight", ["head.weight"])]
    assert package.step["optimizer"]["groups"][0]["parameters"] == ["embed.weight"]
    assert [i["name"] for i in package.step["inputs"] if i["kind"] == "rng"] == ["seed", "step"]
    assert len(optimizer.param_groups[0]["params"]) == len(list(program.parameters()))


def test_calls_that_do_not_fit_the_export_are_errors_at_their_line() -> None:
    program = torch.export.export(Net().train(), (torch.randn(4, 3, 6, 6),),
                                  dynamic_shapes={"x": {0: torch.export.Dim("batch", min=2, max=64)}})
    optimizer = torch.optim.SGD(program.parameters(), lr=0.1)
    labels = torch.zeros(4, dtype=torch.int64)
    for x, said in ((torch.randn(4, 3, 6, 5), r"input 'x' of the exported program is torch.float32\[4, 3, 6, 5\]"),
                    (torch.randn(65, 3, 6, 6), r"torch.float32\[65, 3, 6, 6\]"),
                    (torch.randn(4, 3, 6, 6).double(), "torch.float64.*torch.float32")):
        with pytest.raises(spmd.CaptureError, match=said) as caught:
            spmd.capture(train_step, program, optimizer, x, labels)
        assert "in train_step" in str(caught.value) and "hint: call it with the inputs of the export" in str(caught.value)


@pytest.mark.parametrize("options, said", [
    (["--loss=logits:cross_entropy"], "--optimizer is missing\n  hint: python -m spmd.capture"),
    (["--loss=scores:cross_entropy", "--optimizer=SGD"], "no output 'scores'; it has logits"),
    (["--loss=logits", "--optimizer=SGD"], "this output has shape [4, 5], and a loss has no dims"),
    (["--loss=logits:hinge", "--optimizer=SGD"], "the kind is cross_entropy or mse_loss, not 'hinge'"),
    (["--loss=logits:cross_entropy", "--optimizer=Sgd"], "torch.optim has no 'Sgd'; it has ASGD, "),
    (["--loss=logits:cross_entropy", "--optimizer=SGD,rate=1"], "unexpected keyword argument 'rate'"),
    (["--loss=logits:cross_entropy", "--optimizer=SGD,lr=x"], "write CLASS,OPTION=VALUE,..."),
    (["--loss=logits:cross_entropy", "--optimizer=SGD", "--batch-size=65"], "the export allows 2 to 64"),
    (["--loss=logits:cross_entropy", "--optimizer=SGD", "--reference=none"], "No such file"),
])
def test_wrong_options_are_errors(options, said, tmp_path, capsys) -> None:
    program = torch.export.export(Net().train(), (torch.randn(4, 3, 6, 6),),
                                  dynamic_shapes={"x": {0: torch.export.Dim("batch", min=2, max=64)}})
    torch.export.save(program, tmp_path / "m.pt2")
    assert main([str(tmp_path / "m.pt2"), *options, "-o", str(tmp_path / "m.step")]) == 2
    assert said in capsys.readouterr().err and not (tmp_path / "m.step").exists()


def test_files_that_nobody_reads_are_errors(tmp_path, capsys) -> None:
    (tmp_path / "m.pt2").write_bytes(b"PK nothing")
    assert main([str(tmp_path / "m.pt2"), "--loss=a", "--optimizer=SGD", "-o", str(tmp_path / "m.step")]) == 2
    assert "is no exported program that PyTorch" in capsys.readouterr().err
    assert main(["m.py:setup", "--loss=a", "-o", str(tmp_path / "m.step")]) == 2
    assert "--loss is for a file of torch.export" in capsys.readouterr().err
