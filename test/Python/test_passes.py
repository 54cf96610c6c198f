"""Python passes over the partitioned program, and modules replaced before the capture: they train as eager code that
says the same."""
from __future__ import annotations

import copy
import re

import pytest
import spmd
import torch
import torch.nn.functional as F
from spmd.program import Attribute, Operation, TensorType, read_program

from conftest import ROOT


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))


class Net(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.up, self.down = torch.nn.Linear(6, 12), torch.nn.Linear(12, 3)

    def forward(self, x):
        return self.down(self.up(x).relu())


def train_step(model, optimizer, x, y):
    loss = F.mse_loss(model(x), y)
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    return loss


def setup(make=Net, lr=0.1):
    torch.manual_seed(0)
    model = make()
    twin = copy.deepcopy(model)
    batches = [(torch.randn(8, 6), torch.randn(8, 3)) for _ in range(4)]
    return model, torch.optim.SGD(model.parameters(), lr=lr), twin, torch.optim.SGD(twin.parameters(), lr=lr), batches


def check(losses, eager, model, twin) -> None:
    torch.testing.assert_close(torch.stack(losses), torch.stack(eager), rtol=1e-5, atol=1e-6)
    for name, value in twin.state_dict().items():
        torch.testing.assert_close(model.state_dict()[name], value, rtol=1e-5, atol=1e-6)


PAGE: dict = {"spmd": spmd, "torch": torch, "F": F}
for block in re.findall(r"```python\n(.*?)```", (ROOT / "docs/passes.md").read_text(), re.DOTALL):
    exec(block, PAGE)


@pytest.mark.parametrize("ranks", [1, 2, 4])
def test_a_pass_changes_the_program(ranks) -> None:
    model, optimizer, twin, eager_optimizer, batches = setup()
    step = spmd.compile(train_step, ranks=ranks, policy="class:Linear", passes=[PAGE["halve_gradients"]])
    losses = [step(model, optimizer, x, y) for x, y in batches]
    eager_optimizer.param_groups[0]["lr"] = 0.05
    eager = [train_step(twin, eager_optimizer, x, y).detach() for x, y in batches]
    check(losses, eager, model, twin)


def delayed(twin, optimizer, batches, first: float) -> list:
    """Losses of eager training in which each step uses the gradients of the one before; those before the first are given."""
    losses, kept = [], [torch.full_like(p, first) for p in twin.parameters()]
    for x, y in batches:
        loss = F.mse_loss(twin(x), y)
        gradients = torch.autograd.grad(loss, list(twin.parameters()))
        for p, gradient in zip(twin.parameters(), kept):
            p.grad = gradient
        optimizer.step()
        kept = gradients
        losses.append(loss.detach())
    return losses


@pytest.mark.parametrize("ranks", [1, 2, 4])
def test_state_that_a_pass_adds_moves_work_across_steps(ranks) -> None:
    model, optimizer, twin, eager_optimizer, batches = setup()
    step = spmd.compile(train_step, ranks=ranks, policy="class:Linear", gm_transformation=PAGE["delay_gradients"])
    losses = [step(model, optimizer, x, y, last_train_step=n == 3) for n, (x, y) in enumerate(batches)]
    eager = delayed(twin, eager_optimizer, batches, 0.0)
    check(losses, eager, model, twin)


@pytest.mark.parametrize("kind", ["full", "sharded"])
@pytest.mark.parametrize("ranks", [1, 2])
def test_state_that_a_pass_adds_is_in_checkpoints(kind, ranks, tmp_path) -> None:
    """Saved by 4 ranks, gone on with by others; before the first step it is what was said."""
    def delay_gradients(program):
        for update in program.find("aten._fused_sgd"):
            previous = program.add_state(update.unit, "previous_gradient", init=0.25)
            gradient, update.operands[1] = update.operands[1], previous.value
            previous.update(gradient)

    model, optimizer, twin, eager_optimizer, batches = setup()
    other, other_optimizer, *_ = setup()
    step, resumed = (spmd.compile(train_step, ranks=n, policy="class:Linear", passes=[delay_gradients]) for n in (4, ranks))
    losses = [step(model, optimizer, x, y) for x, y in batches[:2]]
    step.save_checkpoint(tmp_path, kind=kind)
    resumed.load_checkpoint(tmp_path)
    losses += [resumed(other, other_optimizer, x, y) for x, y in batches[2:]]
    eager = delayed(twin, eager_optimizer, batches, 0.25)
    check(losses, eager, other, twin)


class Hidden(torch.nn.Module):
    def __init__(self, between=None) -> None:
        super().__init__()
        self.up, self.between, self.down = torch.nn.Linear(6, 12), between or torch.nn.Identity(), torch.nn.Linear(12, 3)

    def forward(self, x):
        return self.down(self.between(self.up(x).mul(2)).tanh())


class Clipped(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.clamp(-1, 1)

    @staticmethod
    def backward(ctx, gradient):
        return gradient * 0.5


class Clip(torch.nn.Module):
    def forward(self, x):
        return Clipped.apply(x)


@pytest.mark.parametrize("ranks", [1, 2, 4])
@pytest.mark.parametrize("replaces", [True, False])
def test_anchors_are_where_passes_put_something(ranks, replaces) -> None:
    """Upstream's test of dummy operators, which a transformation replaces by another subgraph."""
    model, optimizer, twin, eager_optimizer, batches = setup(Hidden)
    seen = []

    def count(program):
        seen.append([(op.attributes["name"], op.module) for op in program.find("aten.anchor")])

    step = spmd.compile(train_step, ranks=ranks, policy="class:Linear", module_override={torch.nn.Identity: PAGE["Anchored"]()},
                        passes=[count, *([PAGE["clip_hidden"], count] if replaces else [])])
    losses = [step(model, optimizer, x, y) for x, y in batches]
    assert seen == [[("hidden", "between"), ("hidden.backward", "between")], *([[]] if replaces else [])]
    if replaces:
        twin.between = Clip()
    eager = [train_step(twin, eager_optimizer, x, y).detach() for x, y in batches]
    check(losses, eager, model, twin)


def test_anchors_do_nothing_in_eager_and_take_tensors_with_names() -> None:
    x = torch.randn(3)
    assert spmd.anchor(x, "x") is x
    for wrong in ((1.0, "x"), (x, ""), (x, 3)):
        with pytest.raises(TypeError, match="expected a tensor and a name"):
            spmd.anchor(*wrong)


class Recommender(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.body = torch.nn.Sequential(PAGE["Tables"](), torch.nn.Linear(6, 3))

    def forward(self, ids):
        return self.body(ids)


class JoinTables:
    def __init__(self) -> None:
        self.asked, self.states = [], []

    def replacement(self, fqn, module):
        self.asked.append(fqn)
        return PAGE["one_table"].replacement(fqn, module)

    def transform(self, program, flat_state):
        self.states = [value.role for value in flat_state]
        return program


@pytest.mark.parametrize("ranks", [1, 2, 4])
def test_modules_are_replaced_before_the_capture(ranks) -> None:
    model, optimizer, twin, eager_optimizer, _ = setup(Recommender)
    batches = [(torch.randint(5, (8, 3)), torch.randn(8, 3)) for _ in range(3)]
    override = JoinTables()
    step = spmd.compile(train_step, ranks=ranks, module_override=[override])
    losses = [step(model, optimizer, x, y) for x, y in batches]
    assert override.asked == ["body", "body.0", "body.1"] and isinstance(model.body[0], PAGE["OneTable"])
    assert override.states and all(role.startswith("#spmd.shard<@unit0") for role in override.states)
    assert any(node["op"] == "aten.cat.default" for node in step.package.step["nodes"])
    check(losses, [train_step(twin, eager_optimizer, x, y).detach() for x, y in batches], model, twin)


def test_a_dict_replaces_by_class_or_name() -> None:
    model, optimizer, twin, eager_optimizer, batches = setup()
    step = spmd.compile(train_step, module_override={"up": lambda old: old, torch.nn.Linear: lambda old: Doubled(old)})
    step(model, optimizer, *batches[0])
    assert isinstance(model.up, Doubled) and isinstance(model.down, Doubled)


class Doubled(torch.nn.Module):
    def __init__(self, inner):
        super().__init__()
        self.inner = inner

    def forward(self, x):
        return self.inner(x) * 2


def wrong_state(program):
    scatter = program.find("aten._fused_sgd")[0]
    partial = program.find("aten.mm")[-1].results[0]
    scatter.operands[1] = partial


def lost_operand(program):
    update = program.find("aten._fused_sgd")[0]
    update.operands[1] = Operation("aten.neg", [update.operands[1]], [update.operands[1].type]).result


def gives_text(program):
    return "program"


@pytest.mark.parametrize("function, said", [
    (wrong_state, "gave a program that spmd-verify-partition refuses"),
    (lost_operand, "is used before its operation"),
    (gives_text, "returns a str; return the program"),
])
def test_mistakes_of_a_pass_are_errors_that_name_it(function, said) -> None:
    model, optimizer, *_, batches = setup()
    step = spmd.compile(train_step, ranks=2, passes=[function])
    with pytest.raises(spmd.PassError, match=said) as caught:
        step(model, optimizer, *batches[0])
    assert f"{function.__name__} (" in str(caught.value) and "test_passes.py:" in str(caught.value)


def test_options_that_are_no_overrides_are_errors() -> None:
    for options, said in (({"passes": [3]}, "pass 3 is no function of the program, and no name of a pass"),
                          ({"module_override": [3]}, r"expected objects with replacement\(fqn, module\)"),
                          ({"module_override": {3: Net()}}, "expected a class or a name")):
        with pytest.raises(TypeError, match=said):
            spmd.compile(train_step, **options)


TEXT = """#loc = loc(unknown)
#loc1 = loc("a.py":3:0)
#loc2 = loc(fused<#spmd.src<"fc">>[#loc1])
"builtin.module"() ({
  "spmd.mesh"() <{axis_names = ["data"], axis_sizes = array<i64: 2>, sym_name = "mesh"}> : () -> () loc(#loc)
  "func.func"() <{arg_attrs = [{spmd.arg = #spmd.batch<"x", dim = 0>}], function_type = () -> (), sym_name = "step"}> ({
  ^bb0(%arg0: tensor<4x2xf32, #spmd.sharding<global = [8, 2], [shard<0, 1, 4>]>> loc(unknown)):
    %0:2 = "aten.max.dim"(%arg0) <{dim = 1 : i64, keepdim = false}> {note = "a > b, {"} : (tensor<4x2xf32, #spmd.sharding<global = [8, 2], [shard<0, 1, 4>]>>) -> (tensor<4xf32, #spmd.sharding<global = [8], [shard<0, 1, 4>]>>, tensor<4xi64, #spmd.sharding<global = [8], [shard<0, 1, 4>]>>) loc(#loc2)
    "func.return"(%0#1) : (tensor<4xi64, #spmd.sharding<global = [8], [shard<0, 1, 4>]>>) -> () loc(#loc)
  }) : () -> () loc(#loc)
}) : () -> () loc(#loc)
"""


def test_the_program_as_objects() -> None:
    program = read_program(TEXT)
    op = program.find("aten.max.dim", dim=1)[0]
    assert (op.attributes, op.module, op.lines) == ({"dim": 1, "keepdim": False, "note": "a > b, {"}, "fc", [("a.py", 3)])
    assert op.operands[0] is program.arguments[0] and program.arguments[0].role == '#spmd.batch<"x", dim = 0>'
    assert op.results[1].type == TensorType((4,), "i64", (8,), "shard<0, 1, 4>") and program.ranks == 2
    with pytest.raises(ValueError, match="is used by func.return"):
        op.erase()
    other = op.insert_before("aten.argmax", [op.operands[0]], [op.results[1].type], {"dims": [1], "kind": Attribute("unit")})
    program.replace_uses(op.results[1], other.result)
    op.erase()
    printed = str(read_program(str(program)))
    assert '%v1 = "aten.argmax"(%v0) {dims = array<i64: 1>, kind} : ' in printed and "aten.max.dim" not in printed
    assert "loc(#loc2)" in printed and '-> (tensor<4xi64, #spmd.sharding' in printed
