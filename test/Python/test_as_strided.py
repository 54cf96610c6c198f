"""as_strided of a tensor whose memory is known: as slices and views where it is one, else elements by number."""
from __future__ import annotations

import re

import pytest
import torch
from step_check import run, tool

import spmd

X = (5, 6)
VIEWS = {  # size, stride, offset
    "all": ((5, 6), (6, 1), 0),
    "flat": ((30,), (1,), None),
    "rows": ((2, 6), (12, 1), 6),
    "columns": ((5, 2), (6, 1), 3),
    "transposed": ((6, 5), (1, 6), 0),
    "box": ((2, 3), (12, 2), 7),
    "diagonal": ((5,), (7,), 0),
    "corner": ((2, 2), (6, 1), 22),
    "every third": ((10,), (3,), 2),
    "three dims": ((2, 5, 3), (1, 6, 2), 0),
    "one element": ((), (), 4),
    "ones": ((1, 3, 1), (99, 6, 0), 1),
    "repeated": ((4, 6), (0, 1), 12),
}
WINDOWS = {
    "windows": ((28, 3), (1, 1), 0),
    "patches": ((3, 4, 3, 3), (6, 1, 6, 1), 0),
    "interleaved": ((3, 4), (2, 3), 0),
}


def capture(function, x: torch.Tensor, folder):
    def step(model, optimizer, x):
        result = function(model.weight * x)
        result.mul(torch.linspace(-1, 1, result.numel()).view(result.shape)).sum().backward()
        optimizer.step()
        optimizer.zero_grad()
        return result.detach()
    model = torch.nn.Module()
    torch.manual_seed(0)
    model.register_parameter("weight", torch.nn.Parameter(torch.randn(X)))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    spmd.capture(step, model, optimizer, x).save(folder / "s.step")
    return step, model, optimizer


def check(function, folder) -> str:
    """Result and updated parameter are eager's; returns the imported program."""
    torch.manual_seed(1)
    x = torch.randn(X)
    step, model, optimizer = capture(function, x, folder)
    run(tool("spmd-compile"), folder / "s.step", "--ranks=2", "--quiet", "-o", folder / "s.spmd")
    with spmd.load(folder / "s.spmd") as trainer:
        got, updated = trainer.step(x), torch.from_numpy(trainer.read("param", "weight"))
    expected = step(model, optimizer, x)
    torch.testing.assert_close(got, expected)
    torch.testing.assert_close(updated, model.weight.detach())
    return run(tool("spmd-translate"), "--import-step", folder / "s.step", "--no-locations")


@pytest.mark.parametrize("name", VIEWS)
@pytest.mark.sample(3)
def test_views(name: str, tmp_path) -> None:
    """What is a view in PyTorch is slices here, and reads no element by its number."""
    text = check(lambda x: x.as_strided(*VIEWS[name]), tmp_path)
    forward = text.split("aten.sum.dim_IntList")[0]
    assert "gather_rows" not in forward


@pytest.mark.parametrize("name", WINDOWS)
def test_windows(name: str, tmp_path) -> None:
    """Their gradient, too: PyTorch adds into a flat tensor of zeros."""
    assert "gather_rows" in check(lambda x: x.as_strided(*WINDOWS[name]), tmp_path)


def test_offset_counts_from_the_memory(tmp_path) -> None:
    """Of a part of a tensor: its own first element is not the memory's."""
    check(lambda x: x[2:].as_strided((2, 3), (6, 2), 13), tmp_path)
    check(lambda x: x[2:].as_strided((2, 3), (6, 2)), tmp_path)


@pytest.mark.parametrize("function", [
    lambda x: x.t().as_strided((2, 3), (1, 2)),
    lambda x: x.reshape(5, 1, 2, 3).permute(2, 1, 0, 3).as_strided((4, 3, 2), (6, 2, 3), 3),
    lambda x: x.reshape(3, 2, 5).permute(1, 2, 0).as_strided((5, 10), (5, 1)),  # Longformer's chunks that overlap
    lambda x: x.reshape(2, 3, 5).transpose(0, 1)[:, 1:].as_strided((3, 4), (5, 1)),
], ids=["transposed", "permuted", "windows", "part"])
def test_memory_in_another_order(function, tmp_path) -> None:
    """What the dims' order is does not matter: the memory is the tensor's elements, each once."""
    check(function, tmp_path)


@pytest.mark.parametrize("name", ["columns", "transposed", "box", "diagonal", "corner", "three dims", "one element"])
@pytest.mark.sample(2)
def test_writes(name: str, tmp_path) -> None:
    def function(x):
        x = x.clone()
        x.as_strided(*VIEWS[name]).mul_(2).add_(1)
        return x.sin()
    assert re.search(r"aten\.(slice_scatter|slice_backward|permute)", check(function, tmp_path))


@pytest.mark.parametrize("function,what", [
    (lambda x: x[:, ::2].as_strided((2, 3), (1, 2)), r"size \[2, 3\], stride \[1, 2\].*stride \[6, 2\]"),
    (lambda x: x[2:].as_strided((2, 3), (1, 2), 0), r"size \[2, 3\], stride \[1, 2\] and offset 0.*offset 12"),
    (lambda x: x[:2].as_strided((5, 6), (6, 1)), r"size \[5, 6\], stride \[6, 1\]"),
], ids=["with gaps", "before it", "beyond it"])
def test_other_memory_is_an_error(function, what: str, tmp_path) -> None:
    with pytest.raises(spmd.CaptureError, match=f"(?s){what}.*{__file__}.*hint: .*contiguous.*slices"):
        capture(function, torch.randn(X), tmp_path)


def test_writing_twice_is_an_error(tmp_path) -> None:
    def function(x):
        x = x.clone()
        x.as_strided(*WINDOWS["windows"]).mul_(2)
        return x
    capture(function, torch.randn(X), tmp_path)
    with pytest.raises(AssertionError, match=r"of size \[28, 3\] and stride \[1, 1\] may write an element twice"):
        run(tool("spmd-translate"), "--import-step", tmp_path / "s.step")
