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
    ("Adafactor", "means of rows and columns, which every rank has whole", _WHOLE),
    ("`transformers.optimization.Adafactor`", "the same; step counters become tensors", "`test_adafactor.py`"),
    ("Muon", "momentum in chunks; what its products multiply is gathered, and multiplied by every rank", _WHOLE),
    ("LAMB, as users write it", "moments in chunks; norms of parameters and updates are sums over the ranks' chunks", _WHOLE),
    ("one written by hand", "as its ops say", "`test_kept_gradients.py`, `test_programs.py`"),
    ("any of these, of parameters in bf16 or f16 with masters", "master, moments and update in f32, in chunks", "`test_masters.py`"),
    ("a `fused=True` one under `torch.amp.GradScaler`", "`grad_scale` and `found_inf`, decided on the ranks", "`test_grad_scaler.py`")]


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


FIRST_STEPS = '''\
- The capture observes how the state begins: it runs `step()` twice on fake tensors. If each state begins as a constant, and the
  remaining operators of the first step are those of the second one, the artifact has one program. Otherwise the package has a
  second graph for the first step, and the artifact a second program on the same state, which the runtime runs once; it does not
  run this program from weights that have optimizer state. SGD with dampening has a first step of its own, and so has an optimizer
  whose state begins as a copy of the parameter (Lookahead, schedule-free), or whose first step skips the update
  (`test/Kinds/first_step.py`, `test/Python/test_kind_first_step.py`).
- A first step of its own is an error if the step leaves its gradients to a later call, if a `GradScaler` may skip it, or if other
  parameters already have optimizer state. The hint is to take one step in eager PyTorch before the first compiled one.
- Each state is a tensor in an entry of `state[p]`. A list of tensors there, a tensor in a param group or in an attribute of the
  optimizer, and state that belongs to no parameter (`state["k"]`) are errors. So is a state that has its parameter's shape for one
  parameter of a shard unit, and another shape for another parameter (GaLore).
- An optimizer that is not PyTorch's and that rejects `capturable=True` with an assertion is captured with `capturable=False`.
'''

COUNTS = '''\
- An optimizer may count in Python: in a param group (`group["step"] += 1`), in the state of a parameter, or in an attribute that is a
  number. Under `@spmd.compile` such a number is an input of the program, as the learning rate is. After each call it has the value
  that eager PyTorch leaves.
- Arithmetic with such a number is part of the graph, functions of the module `math` and numbers in arguments of PyTorch's functions
  included. A comparison (`if step > 5`, `max(lr, lr_max)`) is a guard: another answer compiles another program, of at most
  `max_compiles`. `isinstance()` gives what it gives in eager PyTorch.
- A changing number is an error as an index, as a size, as a text or key, in `type()`, `range()`, `round()`, `int()` and `float()`.
  Numbers that change in lists, dicts and other objects of the optimizer are errors. So are numbers of numpy that change, and numbers
  that depend on values of tensors.
- A `GradScaler` decides by values whether a step is skipped, so an optimizer that counts in Python is an error with it. A package of
  `spmd.capture` has no Python, so an optimizer that counts in Python is an error there.
- Checkpoints have the numbers of param groups. Saving a checkpoint is an error where the optimizer counts elsewhere;
  `optimizer.state_dict()` has all numbers.
- State may be replaced (`state["previous"] = p.grad`): the program writes the new tensor into the old one. The new tensor must have
  the shape and dtype of the old one, and no other tensor of the next step may share its memory.
- `test/Kinds/optimizers.py` crosses optimizers that count with gradient accumulation, schedulers, f32 masters, checkpoints and two
  ranks; `test/Kinds/optimizers_of_packages.py` trains with all optimizers of five packages (`pytorch_optimizer`, `torch_optimizer`,
  `schedulefree`, `prodigyopt` and `timm`).
'''


def document() -> str:
    """The text of docs/optimizers.md."""
    from spmd.capture.optimizer.optimizer_state import UNSUPPORTED
    lines = [
        "# Optimizers", "",
        "What of `torch.optim` is captured, partitioned and run, from a cold start and from existing state. The table "
        "is",
        "written by `python test/Python/optimizer_cases.py` from the cases of `test/Python/test_optimizers.py`: each is",
        "captured and compared with eager over five steps, partitioned for 1 to 4 ranks and compared with the captured "
        "step",
        "in float64 to 1e-12, optimizer state included; each optimizer also trains on two ranks of the host.", "",
        "| optimizer | single-tensor | foreach | fused | options tested |", "| --- | --- | --- | --- | --- |"]
    for optimizer, options in OPTIONS.items():
        marks = []
        for implementation in ("single", "foreach", "fused"):
            case = Case(optimizer, implementation, "plain")
            marks.append("–" if case not in CASES else "exact" if tolerance(case) == 0 else f"{tolerance(case):.0e}")
        lines.append(f"| {optimizer} | {' | '.join(marks)} | {', '.join(options)} |")
    lines += ["", "Others, and what ranks have of them:", "", "| optimizer | state and update | tests |", "| --- | --- | --- |",
              *(f"| {name} | {what} | {tests} |" for name, what, tests in OTHERS)]
    lines += [
        "",
        "The numbers are the largest difference from eager PyTorch after five steps, relative to the largest entry of a",
        "tensor; *exact* is bit by bit. *groups* are two param groups with other learning rates and weight decay; "
        "*all* are",
        "all options of the row at once.", "",
        "- Without `foreach` and `fused`, SGD, Adam and AdamW are recorded as fused, the others one tensor at a time.",
        "- `capturable` is set for the capture where a bias correction would else be a Python number read from a "
        "tensor; the",
        "  results are those of `capturable=False`: the bias corrections are computed in float64, as Python does.",
        "- PyTorch's fused optimizers read on CPUs a gradient in the order of memory, whatever its strides: a gradient "
        "that",
        "  is set by hand (`p.grad = ...` of `torch.autograd.grad`, say) with other strides than the parameter's updates "
        "other",
        "  elements than those that it is of. The compiled step updates those that it is of, as the other "
        "implementations do.",
        "- PyTorch's fused SGD updates on CPUs, in bf16 and f16, only the last elements of a parameter (of 2.13: those "
        "that",
        "  fill no vector). The compiled step updates all, as the other implementations do.",
        *FIRST_STEPS.splitlines(),
        "- State may have another type than its parameter (moments in bf16), the same for all parameters of a shard unit: it is one buffer for each kind. A",
        "  mixture is an error that names two parameters.",
        "- The learning rate of each group is read at every step; a learning rate that is a tensor works too. So are options that schedulers",
        "  move: `scheduled_options` of `spmd.capture`, by themselves under `@spmd.compile` ([python.md](python.md)).",
        "- Single-tensor optimizers are merged into list ops (`spmd-merge-optimizer-lists`), so that all "
        "implementations give",
        "  one kernel per flat buffer.",
        "- An optimizer of one's own is captured as the ops that it consists of. What it computes of whole parameters, no "
        "rank",
        "  has: norms (LAMB, as its users write it) are sums over the ranks' parts; for products of matrices "
        "(`torch.optim.Muon`)",
        "  what they multiply is gathered, and every rank multiplies all of it, which a warning says with its share of the step's",
        "  operations. State of another shape than the parameter's (means of rows and columns: `torch.optim.Adafactor`) every "
        "rank",
        "  has whole. All train like eager on 1 to 3 ranks, sharded and replicated "
        "(`test/Python/test_whole_parameters.py`).",
        "- Adafactor's numbers are computed in float64 on tensors, as Python computes them in eager; so are those of transformers' "
        "Adafactor,",
        "  whose step counters become tensors, which its own code takes as well (`test/Python/test_adafactor.py`).",
        *COUNTS.splitlines(), "", "Not supported, each an error when the step is captured:", ""]
    lines += [f"- {name}: {why}." for name, why in UNSUPPORTED.items()]
    lines.append("- `nn.Embedding(sparse=True)` with any optimizer; dense gradients give the same numbers with SGD and Adagrad.")
    lines.append("- `differentiable=True`: the optimizer's step is part of no gradient in a training step.")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    import sys
    from pathlib import Path
    root = Path(__file__).resolve().parent.parent.parent
    sys.path.insert(0, str(root / "python-bindings"))
    (root / "docs/optimizers.md").write_text(document())
