"""spmd.compile: the arguments, and the CompiledStep that they make (compiled_step.py)."""
from __future__ import annotations

from typing import Any, Callable, Iterable, Sequence

import torch

from ..capture.write.batch_sizes import sizes_of
from ..compat.overrides import Overrides
from ..compat.parallel_mode import arguments_of
from ..meshes import count_ranks, mesh_text, mesh_text_with_tensor
from ..passes import Pass
from ..placements import placement_text
from ..precision import Precision
from ..unit_options import take_arguments_of_fsdp
from ..units.choice import UnitChoice
from .batch_sizes import Dynamic
from .compiled_step import CompiledStep, NonFiniteError
from .initialization import Initialize
from .options import CompileOptions, RunOptions, StepOptions, TrainingOptions

__all__ = ["CompiledStep", "NonFiniteError", "compile"]


def _own_chip() -> str:
    """"sm_90" of this machine's GPUs."""
    if not torch.cuda.is_available():
        raise ValueError("target is 'cuda', and PyTorch finds no GPU here; name the kind of the one that it is for "
                         "(cuda:sm_80, cuda:sm_90, cuda:sm_100), or take target=\"host\"")
    major, minor = torch.cuda.get_device_capability()
    return f"sm_{major}{minor}"


def compile(train_step: Callable | None = None, *, ranks: int | None = None, policy: Any = None, mode: str | None = None,
            view: str = "global", gradient_divide_factor: float | None = None, accumulate: str = "sharded",
            target: str = "host", batch_dims: dict[str, int | None] | None = None, max_compiles: int = 8,
            options: Sequence[str] = (), threads: int | None = None, timeout: float | None = None,
            ignored_modules: Iterable[torch.nn.Module] | None = None,
            ignored_states: Iterable[Any] | None = None, check_finite: bool = False, keep_grads: bool = False, precision: Any = None, batch: str = "rows",
            launcher: str | None = None, module_override: Any = None, gm_transformation: Pass | None = None,
            passes: Sequence[Pass] = (), mesh: Any = None, param_init_fn: Initialize | None = None,
            parallel_mode: Any = None, flight_record: str | None = None, override_placements: Any = None,
            dynamic_batch: Any = None, maybe_dynamic_batch: Any = None, **fsdp: Any) -> Any:
    """Compiles a training step for `ranks` ranks; as a decorator, with or without arguments, or given the function.

        @spmd.compile(ranks=4, policy=ModuleWrapPolicy({Block}))
        def train_step(model, optimizer, x, y): ...

    Random numbers are drawn with torch.initial_seed() as it is at the first call; the seed is not read again.

    Args:
      train_step: as for spmd.capture. Without it, a decorator is returned.
      ranks: how many ranks share parameters, gradients, optimizer state and batch. None: one for each process that
        torchrun, mpirun or srun has started; a single rank without them. Else a multiple of the processes.
      policy: which modules' parameters are gathered together: a --policy string, or one of FSDP's wrap policies, or any
        callable like them (docs/shard-units.md). None: what fully_shard and wrap have said, or one unit.
      mode: what units are where nothing else is said of them: "fully_shard" (the default), "shard_grad_op",
        "shard_optimizer", "hybrid", "replicate", or "default" beside options=["--memory-budget=…"]
        (docs/shard-units.md).
      view: what the step computes. "global": on the whole batch, whatever the number of ranks. "local": each rank on
        its rows of the batch, and gradients are averaged, as FSDP does.
      gradient_divide_factor: with view="local", what the sum of the ranks' gradients is divided by, as FSDP2's
        set_gradient_divide_factor; 1 adds them up. None: the number of ranks.
      accumulate: gradients that a call leaves to a later one (docs/python.md, gradient accumulation). "sharded": each call
        reduces what it adds, and each rank keeps its part. "scattered", on a mesh of two axes: each call reduces
        within the shard group, and the call that updates across, once. "unsharded": each rank adds up its own summands of all
        gradients, and the call that updates reduces once: fewer collectives, more memory.
      target: what kernels are for. "host": this machine's CPU. "cuda": this machine's GPUs, one for each rank;
        "cuda:CHIP" (cuda:sm_90) names their kind. "emulate:CHIP": the kernels of that GPU, run on the CPU with every
        access checked, which is slow.
      batch_dims: as for spmd.capture.
      max_compiles: how many programs (other shapes, Python values, constant options) the step may have.
      options: further options of spmd-compile, as strings.
      threads: CPU threads of all ranks together; by default one per core.
      timeout: seconds after which a collective that waits for a rank, and a step in which nothing ends, is an error.
      flight_record: a folder; when a step fails, what each rank did last is written to rank-N.json there.
      ignored_modules, ignored_states: modules and parameters that are in no unit, and whole on every rank.
      keep_grads: `p.grad` can be read after a step that clears gradients before it computes them
        (`zero_grad(); backward(); step()`); each rank then keeps its part of them between steps. Of one that clears them
        at its end, unshard_params(with_grads=True) has them, as the optimizer got them.
      precision: in which the model computes, and its gradients are reduced: MixedPrecisionPolicy, MixedPrecision, or
        text like "param=bf16,reduce=f32" (docs/precision.md). Parameters and optimizer state keep their types, but for
        "master=f32": parameters in bf16 or f16 then have f32 masters, and the optimizer f32 state.
      check_finite: a loss that is nan or infinite is a NonFiniteError that names the step, when it is over.
      batch: what each of several processes calls the step with. "rows": its own rows, as with FSDP; the global batch is
        those of all, in the order of their ranks. "global": the global batch, the same in all.
      launcher: who started the processes: "torchrun", "mpirun", "mpiexec", "srun", "environment" (RANK, WORLD_SIZE,
        MASTER_ADDR, MASTER_PORT), "none": this one is alone. None: whose variables are set.
      module_override: objects with replacement(fqn, module), asked for each child of the model before the capture, or
        transform(program, flat_state), or both; or a dict of modules, or functions of the old one, by class or name.
      passes, gm_transformation: functions that change the partitioned program, or texts that name MLIR passes
        (docs/passes.md), in this order, after the transformations of module_override.
      mesh: how the ranks are arranged: a DeviceMesh of PyTorch's with one or two axes, its sizes, or text as for
        spmd-compile --mesh ("replicate:2,shard:4"). Of two axes units are cut along the second, and ranks have the same
        along the first. None: as fully_shard's meshes say, or in one row. With override_placements one axis more, the
        last, is the tensor axis; in text it is tensor:T.
      param_init_fn: makes the values of a module on the meta device: a function of the module, called once for each
        that has tensors of its own, which are memory without values then. None: its reset_parameters().
      parallel_mode: instead of policy and mode, as torch.distributed._spmd has it: spmd.DataParallel("fully_shard"), or an
        object whose partition(model) gives the shard units, a dict of options by module.
      override_placements: where parameters are on the mesh's tensor axis, by patterns of their names, of which the first
        that matches decides: {"blocks.*.fc1.weight": Shard(0)} of torch.distributed.tensor, Replicate(), or text as
        for --override-placements. What nothing is said of is whole (docs/shard-units.md, the tensor axis).
      dynamic_batch: the most rows that a batch has, 9: one program serves batches of 1 to 9 rows (docs/python.md, batches of
        several sizes); or several such numbers, (4, 16): a batch is padded, exactly, to the next of them. A larger batch is
        compiled for itself. An error where the step needs a program for each size.
      maybe_dynamic_batch: the same, but such a step is compiled for each size, with a Remark that says why.
      fsdp: further arguments of FullyShardedDataParallel and fully_shard, so that a call of theirs can be carried over:
        what means nothing here is told with a Remark, anything else is an error.

    Returns:
      A CompiledStep.

    Raises:
      ValueError: an option has another value than the allowed ones, which the message lists.
      TypeError: there is no such argument.
    """
    take_arguments_of_fsdp(fsdp, "spmd.compile")
    if param_init_fn is not None and not callable(param_init_fn):
        raise TypeError(f"param_init_fn is {param_init_fn!r}; expected a function of a module")
    if view not in ("global", "local"):
        raise ValueError(f"view is {view!r}; allowed: global, local")
    if accumulate not in ("sharded", "scattered", "unsharded"):
        raise ValueError(f"accumulate is {accumulate!r}; allowed: sharded, scattered, unsharded")
    if gradient_divide_factor is not None and view == "global":
        raise ValueError("gradient_divide_factor is for view='local'; with view='global' gradients are those of the "
                         "loss, on any number of ranks")
    if target == "cuda":
        target = f"cuda:{_own_chip()}"
    if target != "host" and not target.startswith(("cuda:", "emulate:")):
        raise ValueError(f"target is {target!r}; allowed: host, cuda (this machine's GPUs), cuda:CHIP (cuda:sm_90), and "
                         "emulate:CHIP, the kernels of a GPU run on the CPU")
    if mesh is not None:
        mesh = (mesh_text if override_placements is None else mesh_text_with_tensor)(mesh, "mesh")
        if ranks not in (None, count_ranks(mesh)):
            raise ValueError(f"ranks is {ranks}, and mesh, {mesh}, has {count_ranks(mesh)}; leave ranks out")
        ranks = count_ranks(mesh)
    for name in ("target", "ranks", "mesh"):
        if any(option.split("=")[0] == f"--{name}" for option in options):
            raise ValueError(f"options has --{name}; say {name}= instead")
    if batch not in ("rows", "global"):
        raise ValueError(f"batch is {batch!r}; allowed: rows, global")
    if parallel_mode is not None:
        said = arguments_of(parallel_mode, policy, mode)
        policy, mode, passes = said["policy"], said["mode"], (*said["passes"], *passes)
    units = UnitChoice(policy, tuple(ignored_modules or ()), tuple(ignored_states or ()), mode, mesh)
    words = [*([] if mode is None else [f"--mode={mode}"]), f"--target={target}",
             *([] if mesh is None else [f"--mesh={mesh}"]),
             *([] if override_placements is None
               else [f"--override-placements={placement_text(override_placements)}"]),
             *([] if view == "global" else [f"--view={view}"]),
             *([] if accumulate == "sharded" else [f"--accumulate={accumulate}"]),
             *([] if gradient_divide_factor is None
               else [f"--gradient-divide-factor={float(gradient_divide_factor)!r}"]), *options]
    if dynamic_batch is not None and maybe_dynamic_batch is not None:
        raise ValueError("dynamic_batch and maybe_dynamic_batch are both given; leave one out")
    dynamic = None
    for option, value in (("dynamic_batch", dynamic_batch), ("maybe_dynamic_batch", maybe_dynamic_batch)):
        if value is not None:
            dynamic = Dynamic(sizes_of(value, option), falls_back=option == "maybe_dynamic_batch")
    computed = Precision.of(precision, "precision")
    overrides = Overrides.of(module_override, gm_transformation, passes)
    trainer_options = {k: v for k, v in (("threads", threads), ("timeout", timeout), ("batch", batch),
                                         ("flight_record", flight_record)) if v is not None}

    chosen = TrainingOptions(StepOptions(batch_dims, view, keep_grads, computed, dynamic),
                             CompileOptions(tuple(words), units, overrides, max_compiles),
                             RunOptions(ranks, launcher, trainer_options, param_init_fn, check_finite))

    def wrap(function: Callable) -> CompiledStep:
        return CompiledStep(function, chosen)

    return wrap if train_step is None else wrap(train_step)
