"""Attributes of PyTorch and other libraries that a capture replaces: only capture/observe/patches.py replaces them,
each has a reason, and each is the same object again after a capture."""
from __future__ import annotations

import contextlib
import inspect
import logging
import queue
import threading
from pathlib import Path

import pytest
import torch
import torch._dynamo
import torch.distributed.device_mesh  # captures replace methods of these only if they are imported
import torch.nn.attention.flex_attention
import torch.nn.attention.varlen
import torch.nn.functional as F
from replaced_attributes import replaced_attributes

import spmd
from spmd.capture.observe import patches

PACKAGE = Path(spmd.__file__).parent
TABLE = patches.table()


def name_of(entry) -> str:
    if isinstance(entry, patches.Kernels):
        return ",".join(entry.operators)
    return f"{entry.owner}.{entry.name}" if isinstance(entry, patches.Patch) else entry.name


def test_only_the_table_replaces_attributes():
    files = [file for file in PACKAGE.rglob("*.py") if file != Path(patches.__file__)]
    assert len(files) > 100
    found = [f"{file.relative_to(PACKAGE)}:{place}"
             for file in files for place in replaced_attributes(file.read_text())]
    assert not found, "\n".join([*found, "hint: replace attributes with patches.replaced()"])


@pytest.mark.parametrize("line", [
    "torch.any = print",
    "torch.nn.Module.to = print",
    "torch.a, torch.b = 1, 2",
    "torch.config.level += 1",
    "del FakeTensor.data",
    "FakeTensor.data: property = property()",
    "nn.Linear.forward = print",
    "setattr(torch.Tensor, 'numpy', print)",
    "delattr(FakeTensor, 'data')",
    "for place, name in ((torch, 'any'), (torch, 'all')): setattr(place, name, print)",
    "for kind in (torch.SymInt, torch.SymFloat): kind.__repr__ = print",
    "log = logging.getLogger('torch.export'); log.disabled = True",
    "module = sys.modules['torch']; module.any = print",
    "if (module := sys.modules.get('numpy')) is not None: module.seed = print",
    "types = torch.utils._foreach_utils.types; types.append(FakeTensor)",
    "torch.utils._foreach_utils.types[:] = []",
    "vars(torch)['any'] = print",
    "torch.__dict__.update(any=print)",
    "import unittest.mock",
    "from unittest import mock",
    "from unittest.mock import patch",
    "patch.object(torch, 'any', print)",
    "mock.patch('torch.any', print)",
    "torch._C._set_mkldnn_enabled(False)",
    "torch._dynamo.config.patch(error_on_nested_fx_trace=False)",
    "from ...torch_api.modules import dynamo_config; dynamo_config().patch(verbose=True)",
    "from ...torch_api.modules import dynamo_config; dynamo_config().verbose = True",
    "from ...torch_api.settings import set_mkldnn_enabled; set_mkldnn_enabled(False)",
    "from ...torch_api.tracing import FakeTensor as Fake; Fake.data = property()",
    "torch.compiler.set_stance('force_eager')",
    "torch.library.Library('aten', 'IMPL')"])
def test_a_replacement_is_found(line):
    imports = "import logging, sys, torch\nfrom torch import nn\nfrom torch._subclasses.fake_tensor import FakeTensor\n"
    for scope in ("", "def outer():\n def inner(a):\n  ", "class Made:\n def run(self):\n  "):
        assert replaced_attributes(f"{imports}{scope}{line}"), scope


@pytest.mark.parametrize("line", [
    "self.mode = torch.any",
    "made = torch.empty(3); made.grad = None",
    "def run(module): module.any = print",
    "sys.modules[__name__].any = print",
    "class Own: pass\nsetattr(Own, 'run', print)",
    "parts = [torch.any]; parts.append(torch.all)",
    "from . import errors; errors.count = 3",
    "torch.library.Library('spmd', 'FRAGMENT')",
    "sys.path.insert(0, '.')"])
def test_other_assignments_are_not_found(line):
    assert not replaced_attributes(f"import sys, torch\n{line}")


@pytest.mark.parametrize("entry", TABLE, ids=name_of)
def test_an_entry_has_a_reason_and_an_attribute(entry):
    assert entry.reason.endswith(".") and len(entry.reason.split()) > 3
    if isinstance(entry, patches.Patch):
        owner = entry.find_owner()
        if owner is None:
            assert entry.is_optional
            pytest.importorskip(entry.owner.partition(":")[0])
            owner = entry.find_owner()
        assert entry.is_lazy or hasattr(owner, entry.name)
    elif isinstance(entry, patches.Switch):
        entry.read()
    else:
        for operator in entry.operators:
            assert hasattr(getattr(torch.ops, entry.namespace), operator)


def test_entries_are_listed_once():
    names = list(map(name_of, TABLE))
    assert len(set(names)) == len(names)


def found_in(entry):
    """What the entry's owner has now, without bases; for kernels, what PyTorch's dispatcher has."""
    if isinstance(entry, patches.Switch):
        return entry.read()
    if isinstance(entry, patches.Kernels):
        packets = [getattr(getattr(torch.ops, entry.namespace), name) for name in entry.operators]
        overloads = [getattr(packet, overload) for packet in packets for overload in packet.overloads()]
        return [torch._C._dispatch_dump_table(overload.name()) for overload in overloads]
    owner = entry.find_owner()
    if isinstance(entry, patches.CodePatch):
        return (owner.__code__,)
    return vars(owner).get(entry.name, "inherited"), inspect.getattr_static(owner, entry.name, None)


def is_same(before, now) -> bool:
    if isinstance(before, tuple):
        return all(one is other for one, other in zip(before, now, strict=True))
    return before == now


def is_there(entry) -> bool:
    return not isinstance(entry, patches.Patch) or entry.find_owner() is not None


BEFORE = [(entry, found_in(entry)) for entry in TABLE if is_there(entry)]


def replaced_now() -> list[str]:
    return [name_of(entry) for entry, value in BEFORE if not is_same(value, found_in(entry))]


@contextlib.contextmanager
def checks_that_all_is_restored():
    before = [(entry, found_in(entry)) for entry in patches.table() if is_there(entry)]
    yield
    assert [name_of(entry) for entry, value in before if not is_same(value, found_in(entry))] == []


def arguments():
    model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Dropout(0.1), torch.nn.Linear(4, 4))
    return model, torch.optim.Adam(model.parameters()), torch.randn(8, 4), torch.randint(4, (8,))


def test_a_capture_restores_all():
    seen: queue.SimpleQueue[list[str]] = queue.SimpleQueue()  # a list of the step's would be a side effect

    def step(model, optimizer, x, y):
        seen.put(replaced_now())
        loss = F.cross_entropy(torch.utils.checkpoint.checkpoint(model, x, use_reentrant=False), y)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        return loss

    with checks_that_all_is_restored():
        spmd.capture(step, *arguments())
    # All other entries are replaced for a part of the step, or outside of the step.
    elsewhere = ("torch.compiler.", "torch.export.", "torch.nn.utils.clip_grad.", "torch.autograd._make_grads", "torch.distributed:get_rank")
    replaced = seen.get()
    names = [name_of(entry) for entry, _ in BEFORE if not name_of(entry).startswith(elsewhere)]
    assert [name for name in names if name not in replaced] == []


def test_a_capture_that_raises_restores_all():
    def step(model, optimizer, x, y):
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        if loss > 1:
            optimizer.zero_grad()
        return loss

    with checks_that_all_is_restored(), pytest.raises(spmd.CaptureError, match="if loss > 1"):
        spmd.capture(step, *arguments())


def test_an_error_of_the_step_restores_all():
    class Stop(BaseException):
        pass

    def step(model, optimizer, x, y):
        optimizer.register_step_pre_hook(lambda *unused: stop())  # while the flag of torch.compiler is set
        F.cross_entropy(model(x), y).backward()
        optimizer.step()

    def stop():
        assert torch.compiler._is_compiling_flag
        raise Stop

    model, _, x, y = arguments()
    with checks_that_all_is_restored(), pytest.raises(Stop):
        spmd.capture(step, model, torch.optim.RMSprop(model.parameters()), x, y)


class Base:
    inherited = 1

    @classmethod
    def of_class(cls):
        return cls


class Owner(Base):
    number = 2

    @staticmethod
    def static():
        return 3

    @classmethod
    def made(cls):
        return cls

    @property
    def read(self):
        return 4


def own(name: str) -> patches.Patch:
    return patches.Patch(f"{__name__}:Owner", name, "A test replaces it.")


def test_restoring_is_exact():
    before = dict(vars(Owner))
    with patches.replaced({own(name): name for name in ("inherited", "of_class", "number", "static", "made", "read")}):
        assert Owner.inherited == "inherited" and Owner.read == "read"
    assert dict(vars(Owner)) == before
    assert all(vars(Owner)[name] is before[name] for name in before)


def test_a_later_replacement_wraps_an_earlier_one():
    with patches.replaced({own("number"): 10}), patches.replaced({own("number"): own("number").value() + 1}):
        assert Owner.number == 11
    with patches.replaced({own("number"): 10}):
        with pytest.raises(ZeroDivisionError), patches.replaced({own("number"): 20}):
            raise ZeroDivisionError
        assert Owner.number == 10
    assert Owner.number == 2


def test_an_attribute_that_is_missing_is_an_error():
    with pytest.raises(AttributeError), patches.replaced({own("number"): 10, own("missing"): 1}):
        pass
    assert Owner.number == 2 and not hasattr(Owner, "missing")
    with pytest.raises(KeyError, match="'neg' has no entry"), patches.replaced({patches.COV: {"neg": torch.neg}}):
        pass


def test_an_optional_attribute_without_its_module_is_not_replaced():
    absent = patches.Patch("no_such_module:Class", "step", "A test replaces it.", is_optional=True)
    with patches.replaced({absent: 1, own("number"): 10}):
        assert Owner.number == 10


def test_threads_share_a_replacement():
    shared = patches.Shared(lambda: {own("number"): 10})
    both, first_left = threading.Barrier(2), threading.Event()
    seen = []

    def first():
        with shared.replaced():
            both.wait(10)
        first_left.set()

    thread = threading.Thread(target=first)
    thread.start()
    with shared.replaced():
        both.wait(10)
        assert first_left.wait(10)
        seen.append(Owner.number)
    thread.join()
    assert seen == [10] and Owner.number == 2


def test_a_logger_is_restored():
    log = logging.getLogger(patches.FAKE_TENSOR_LOG.owner)
    with patches.replaced({patches.FAKE_TENSOR_LOG: True}):
        assert log.disabled
    assert not log.disabled


def test_tensors_do_not_become_sequences():
    """PyTorch's C code reads a list of tensors without dims as numbers, unless they are sequences."""
    zero = torch.zeros(())
    spmd.capture(lambda model, optimizer, x, y: model(x)[0].sum(), *arguments())
    assert torch.tensor([zero, zero + 1]).tolist() == [0, 1]
    with patches.replaced({patches.TENSOR_GETITEM: lambda tensor, index: index}):
        assert zero["any"] == "any" and torch.tensor([zero]).tolist() == [0]
