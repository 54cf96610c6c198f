"""The optimizers of torch.optim × implementations × options: one table for the tests and for docs/optimizers.md."""
from __future__ import annotations

import dataclasses
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn

IMPLEMENTATIONS = {"default": {}, "single": {"foreach": False}, "foreach": {"foreach": True}, "fused": {"fused": True}}
FUSED = ("SGD", "Adam", "AdamW", "Adagrad")

# Per optimizer: the options that are tested, by a short name. "groups" are two param groups of other options.
_ADAM = {
    "plain": {}, "weight decay": {"weight_decay": 0.1}, "amsgrad": {"amsgrad": True}, "maximize": {"maximize": True},
    "all": {"amsgrad": True, "maximize": True, "weight_decay": 0.05, "betas": (0.8, 0.95), "eps": 1e-6}, "groups": {},
}
_NESTEROV_ADAM = {
    "plain": {}, "weight decay": {"weight_decay": 0.1},
    "decoupled": {"weight_decay": 0.1, "decoupled_weight_decay": True}, "maximize": {"maximize": True}, "groups": {},
}
OPTIONS: dict[str, dict[str, dict[str, Any]]] = {
    "SGD": {
        "plain": {}, "momentum": {"momentum": 0.9}, "nesterov": {"momentum": 0.9, "nesterov": True},
        "dampening": {"momentum": 0.9, "dampening": 0.5}, "weight decay": {"weight_decay": 0.1},
        "maximize": {"maximize": True, "momentum": 0.5},
        "all": {"momentum": 0.8, "nesterov": True, "weight_decay": 0.05, "maximize": True}, "groups": {"momentum": 0.9},
    },
    "Adam": _ADAM,
    "AdamW": _ADAM,
    "NAdam": _NESTEROV_ADAM,
    "RAdam": _NESTEROV_ADAM,
    "RMSprop": {
        "plain": {}, "centered": {"centered": True}, "momentum": {"momentum": 0.9},
        "weight decay": {"weight_decay": 0.1},
        "all": {"centered": True, "momentum": 0.8, "weight_decay": 0.05, "maximize": True}, "groups": {},
    },
    "Adagrad": {
        "plain": {}, "lr_decay": {"lr_decay": 0.1}, "accumulator": {"initial_accumulator_value": 0.3},
        "all": {"lr_decay": 0.1, "weight_decay": 0.05, "maximize": True}, "groups": {},
    },
    "Rprop": {"plain": {}, "all": {"etas": (0.4, 1.5), "step_sizes": (5e-3, 0.02), "maximize": True}, "groups": {}},
    "Adadelta": {"plain": {}, "all": {"weight_decay": 0.05, "maximize": True, "rho": 0.8}, "groups": {}},
    "Adamax": {"plain": {}, "all": {"weight_decay": 0.05, "maximize": True}, "groups": {}},
    "ASGD": {"plain": {}, "all": {"weight_decay": 0.05, "maximize": True, "t0": 2.0}, "groups": {}},
}
LR = {"SGD": 0.1, "Adadelta": 1.0, "ASGD": 0.05}


@dataclasses.dataclass(frozen=True)
class Case:
    """One optimizer with one implementation and one set of options."""

    optimizer: str
    implementation: str
    options: str

    def __str__(self) -> str:
        return f"{self.optimizer} {self.implementation} {self.options}"

    def setup(self, steps: int = 5) -> dict[str, Any]:
        """Step, model, optimizer, arguments and batches; the model has parameters that no number of ranks divides."""
        torch.manual_seed(0)
        model = Net()
        options = {"lr": LR.get(self.optimizer, 1e-2), **OPTIONS[self.optimizer][self.options],
                   **IMPLEMENTATIONS[self.implementation]}
        params: Any = model.parameters()
        if self.options == "groups":
            params = [{"params": [p for p in model.parameters() if p.dim() > 1], "weight_decay": 0.1},
                      {"params": [p for p in model.parameters() if p.dim() < 2], "lr": options["lr"] / 2}]
        optimizer = getattr(torch.optim, self.optimizer)(params, **options)
        batches = [(torch.randn(7, 6), torch.randint(3, (7,))) for _ in range(steps)]
        return dict(train_step=train_step, model=model, optimizer=optimizer, args=batches[0], reference=batches)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(6, 5)
        self.fc2 = nn.Linear(5, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.fc2(torch.tanh(self.fc1(x)))


def train_step(model, optimizer, x, y):
    loss = F.cross_entropy(model(x), y)
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    return loss


_WHOLE = "`test_whole_parameters.py`"
OTHERS = [
    ("Adafactor", "means of rows and columns, whole on every rank", _WHOLE),
    ("`transformers.optimization.Adafactor`", "the same; step counters become tensors", "`test_adafactor.py`"),
    ("Muon", "momentum in chunks; operands of its products are gathered, and every rank computes the products", _WHOLE),
    ("LAMB, as users write it", "moments in chunks; norms of parameters and updates are sums over the ranks' chunks", _WHOLE),
    ("an optimizer written by hand", "as its ops require", "`test_kept_gradients.py`, `test_programs.py`"),
    ("any of these, of parameters in bf16 or f16 with masters", "master, moments and update in f32, in chunks", "`test_masters.py`"),
    ("an optimizer with `fused=True` under `torch.amp.GradScaler`", "`grad_scale` and `found_inf`, computed on the ranks", "`test_grad_scaler.py`")]


def tolerance(case: Case) -> float:
    """How far the captured step may be from eager after five steps, relative to the largest entry of each tensor.

    Fused ones, Rprop, and SGD, RMSprop and Adadelta one by one are the very ops that eager runs. Elsewhere a learning
    rate that is a tensor, and a bias correction in float32 tensors instead of Python numbers, round differently.
    """
    exact = case.implementation == "fused" or case.optimizer == "Rprop" or (
        case.implementation == "single" and case.optimizer in ("SGD", "RMSprop", "Adadelta"))
    return 0.0 if exact else 4e-6


CASES = [Case(optimizer, implementation, options) for optimizer, table in OPTIONS.items()
         for implementation in IMPLEMENTATIONS for options in table
         if implementation != "fused" or optimizer in FUSED]


INTRODUCTION = '''\
# Optimizers

This page lists the optimizers that a compiled step supports, and how close their results are to eager PyTorch. It is
for users who choose an optimizer or write their own. An unsupported optimizer is an error when the step is captured.

`python test/Python/optimizer_cases.py` writes this page from the cases of `test/Python/test_optimizers.py`. The test

- captures each case and compares five steps with eager PyTorch, from no state and from existing state;
- partitions it for 1 to 4 ranks, and compares them with the captured step in float64 to 1e-12, optimizer state
  included;
- trains each optimizer on two ranks of the host.

'''

NOTES = '''\

The numbers are the largest difference from eager PyTorch after five steps, relative to the largest entry of a tensor.
*exact* means equal to the bit. *groups* are two param groups with different learning rates and weight decay. *all* is
all options of the row together.

Without `foreach` and `fused`, SGD, Adam and AdamW are recorded as fused, and all others as single-tensor. All
implementations give one kernel per flat buffer, because `spmd-merge-optimizer-lists` merges single-tensor ops into
list ops.

'''

DETAILS = '''\

## Options that change between steps

The learning rate of each group is read at every step; it may be a tensor. Other options that schedulers change are
read too: those in `scheduled_options` of `spmd.capture`, and all of them under `@spmd.compile`
([python.md](python.md)).

## Arithmetic

- If a bias correction would be a Python number read from a tensor, the capture sets `capturable`. The results are
  those of `capturable=False`: bias corrections are computed in float64, as Python does.
- An optimizer outside of PyTorch that rejects `capturable=True` with an assertion is captured with `capturable=False`.
- Adafactor's numbers are computed in float64 on tensors, as Python computes them in eager. The step counters of
  transformers' Adafactor become tensors, which its own code accepts too (`test/Python/test_adafactor.py`).
- An optimizer of your own is captured as the ops that it runs. A norm of a whole parameter (LAMB) is a sum over the
  ranks' parts.
- For a product of matrices (`torch.optim.Muon`) the operands are gathered, and every rank computes the whole product.
  A warning gives its share of the step's operations.
- State with another shape than its parameter (means of rows and columns in `torch.optim.Adafactor`) is whole on every
  rank. These optimizers train like eager on 1 to 3 ranks, sharded and replicated
  (`test/Python/test_whole_parameters.py`).

On CPUs, PyTorch's fused optimizers differ from its other implementations in two cases. The compiled step computes as
the others do:

- They read a gradient in the order of memory and ignore its strides. A gradient set by hand (`p.grad = ...` from
  `torch.autograd.grad`) with other strides than the parameter updates the wrong elements.
- In bf16 and f16, fused SGD updates only the last elements of a parameter (2.13: the elements that do not fill a
  vector).

## State, and the first step

The capture observes how state begins: it runs `step()` twice on fake tensors. If every state begins as a constant, and
the other operators of both steps are equal, the artifact has one program. Otherwise the package has a second graph for
the first step, and the artifact a second program on the same state. The runtime runs this program once, and does not
run it from weights that have optimizer state.

- These optimizers have a first step of their own: SGD with dampening, an optimizer whose state begins as a copy of the
  parameter (Lookahead, schedule-free), and one whose first step skips the update (`test/Kinds/first_step.py`,
  `test/Python/test_kind_first_step.py`).
- A separate first step is an error if the step leaves its gradients to a later call, if a `GradScaler` may skip it, or
  if other parameters already have optimizer state. The hint is to run one step in eager PyTorch first.
- Each state is a tensor in an entry of `state[p]`. Errors are: a list of tensors there, a tensor in a param group or
  in an attribute of the optimizer, state that belongs to no parameter (`state["k"]`).
- It is also an error if a state has its parameter's shape for one parameter of a shard unit, and another shape for
  another parameter (GaLore).
- State may have another dtype than its parameter (moments in bf16). All parameters of a shard unit must have the same
  dtype of state; otherwise the error names two of them.
- State may be replaced (`state["previous"] = p.grad`): the program writes the new tensor into the old one. It must
  have the shape and dtype of the old one, and no other tensor of the next step may share its memory.

## Numbers that an optimizer counts in Python

An optimizer may count in a param group (`group["step"] += 1`), in the state of a parameter, or in an attribute that is
a number. Under `@spmd.compile` such a number is an input of the program, as the learning rate is. After each call it
has the value that eager PyTorch leaves.

- Arithmetic with such a number is part of the graph. This includes functions of the module `math`, and numbers in
  arguments of PyTorch's functions.
- A comparison (`if step > 5`, `max(lr, lr_max)`) is a guard: another result compiles another program, up to
  `max_compiles`. `isinstance()` returns what it returns in eager PyTorch.
- A changing number is an error as an index, as a size, as a text or key, and in `type()`, `range()`, `round()`,
  `int()` and `float()`.
- Numbers that change in lists, dicts and other objects of the optimizer are errors. So are changing numbers of numpy,
  and numbers that depend on values of tensors.
- A `GradScaler` decides by values whether a step is skipped, so it cannot be combined with an optimizer that counts in
  Python. A package of `spmd.capture` has no Python, so such an optimizer is an error there.
- Checkpoints have the numbers of param groups. If an optimizer counts elsewhere, saving a checkpoint is an error;
  `optimizer.state_dict()` has all numbers.

`test/Kinds/optimizers.py` combines optimizers that count with gradient accumulation, schedulers, f32 masters,
checkpoints and two ranks. `test/Kinds/optimizers_of_packages.py` trains with all optimizers of `pytorch_optimizer`,
`torch_optimizer`, `schedulefree`, `prodigyopt` and `timm`.

## Not supported

Each of these is an error when the step is captured:

'''


def document() -> str:
    """The text of docs/optimizers.md."""
    from spmd.capture.optimizer.optimizer_state import UNSUPPORTED
    lines = ["| optimizer | single-tensor | foreach | fused | options tested |", "| --- | --- | --- | --- | --- |"]
    for optimizer, options in OPTIONS.items():
        marks = []
        for implementation in ("single", "foreach", "fused"):
            case = Case(optimizer, implementation, "plain")
            marks.append("–" if case not in CASES else "exact" if tolerance(case) == 0 else f"{tolerance(case):.0e}")
        lines.append(f"| {optimizer} | {' | '.join(marks)} | {', '.join(options)} |")
    others = ["| optimizer | state and update | tests |", "| --- | --- | --- |",
              *(f"| {name} | {what} | {tests} |" for name, what, tests in OTHERS)]
    unsupported = [*(f"- {name}: {why}." for name, why in UNSUPPORTED.items()),
                   "- `nn.Embedding(sparse=True)` with any optimizer. Dense gradients give the same numbers with SGD and Adagrad.",
                   "- `differentiable=True`: a training step does not differentiate through `optimizer.step()`."]
    return "\n".join([INTRODUCTION + "\n".join(lines), NOTES + "Other optimizers, and the state of each rank:\n",
                      *others]) + "\n" + DETAILS + "\n".join(unsupported) + "\n"


if __name__ == "__main__":
    import sys
    from pathlib import Path
    root = Path(__file__).resolve().parent.parent.parent
    sys.path.insert(0, str(root / "python-bindings"))
    (root / "docs/optimizers.md").write_text(document())
