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
    """Compiles a training step for `ranks` ranks. Use it as a decorator, with or without arguments, or call it.

        @spmd.compile(ranks=4, policy=ModuleWrapPolicy({Block}))
        def train_step(model, optimizer, x, y): ...

    The seed of random numbers is torch.initial_seed() at the first call; it is not read again.

    Args:
      train_step: as for spmd.capture. Without it, a decorator is returned.
      ranks: the number of ranks that share parameters, gradients, optimizer state and batch. None: one for each process
        that torchrun, mpirun or srun started; one rank without a launcher. Otherwise a multiple of the processes.
      policy: the modules whose parameters are gathered together: a --policy string, one of FSDP's wrap policies, or any
        callable like them (docs/shard-units.md). None: those of fully_shard and wrap, or one unit.
      mode: the mode of units without one of their own: "fully_shard" (the default), "shard_grad_op", "shard_optimizer",
        "hybrid", "replicate", or "default" with options=["--memory-budget=…"] (docs/shard-units.md).
      view: the meaning of the step. "global": it computes on the whole batch, for any number of ranks. "local": each
        rank computes on its rows of the batch, and gradients are averaged, as in FSDP.
      gradient_divide_factor: with view="local", the divisor of the sum of the ranks' gradients, as FSDP2's
        set_gradient_divide_factor; 1 gives the sum. None: the number of ranks.
      accumulate: gradients that a call leaves to a later call (docs/python.md, gradient accumulation). "sharded": each
        call reduces its gradients, and each rank keeps its part. "scattered", on a mesh of two axes: each call reduces
        within the shard group, and the call that updates reduces across groups once. "unsharded": each rank adds its
        own summands of all gradients, and the call that updates reduces once: fewer collectives, more memory.
      target: the device of the kernels. "host": this machine's CPU. "cuda": this machine's GPUs, one for each rank;
        "cuda:CHIP" (cuda:sm_90) names their kind. "emulate:CHIP": the kernels of that GPU on the CPU, with every access
        checked, which is slow.
      batch_dims: as for spmd.capture.
      max_compiles: the largest number of programs of the step (for other shapes, Python values, constant options).
      options: further options of spmd-compile, as strings.
      threads: CPU threads of all ranks together; by default one per core.
      timeout: seconds that a collective waits for a rank, and that a step may run without completing a command.
      flight_record: a folder; if a step fails, the last actions of each rank are written to rank-N.json there.
      ignored_modules, ignored_states: modules and parameters outside of units; they stay whole on every rank.
      keep_grads: keep `p.grad` readable after a step that clears gradients before it computes them
        (`zero_grad(); backward(); step()`): each rank keeps its part of them between steps. If a step clears them at
        its end, unshard_params(with_grads=True) returns them as the optimizer read them.
      precision: the types in which the model computes and gradients are reduced: MixedPrecisionPolicy, MixedPrecision,
        or text like "param=bf16,reduce=f32" (docs/precision.md). Parameters and optimizer state keep their types, except
        with "master=f32": bf16 and f16 parameters then have f32 masters, and the optimizer f32 state.
      check_finite: raise NonFiniteError, which names the step, after a step whose loss is NaN or infinite.
      batch: the arguments of each of several processes. "rows": its own rows, as with FSDP; the global batch consists of
        all rows, in rank order. "global": the global batch, equal in all processes.
      launcher: the launcher of the processes: "torchrun", "mpirun", "mpiexec", "srun", "environment" (RANK, WORLD_SIZE,
        MASTER_ADDR, MASTER_PORT), "none" for a single process. None: detected from the environment.
      module_override: objects with replacement(fqn, module), called for each child of the model before the capture, or
        transform(program, flat_state), or both; or a dict of modules, or functions of the old module, by class or name.
      passes, gm_transformation: functions that change the partitioned program, or texts that name MLIR passes
        (docs/passes.md). They run in this order, after the transformations of module_override.
      mesh: the arrangement of the ranks: PyTorch's DeviceMesh with one or two axes, its sizes, or text as for
        spmd-compile --mesh ("replicate:2,shard:4"). On two axes units are cut along the second, and ranks along the first
        have equal parts. None: from fully_shard's meshes, or one axis. With override_placements the last of one more axis
        is the tensor axis; in text it is tensor:T.
      param_init_fn: initializes a module on the meta device: a function of the module, called once for each module with
        tensors of its own, which then have memory without values. None: its reset_parameters().
      parallel_mode: replaces policy and mode, as in torch.distributed._spmd: spmd.DataParallel("fully_shard"), or an
        object whose partition(model) returns the shard units, a dict of options by module.
      override_placements: placements of parameters on the mesh's tensor axis, by patterns of their names; the first match
        decides: {"blocks.*.fc1.weight": Shard(0)} of torch.distributed.tensor, Replicate(), or text as for
        --override-placements. All other parameters stay whole (docs/shard-units.md, the tensor axis).
      dynamic_batch: the largest number of rows of a batch. With 9, one program serves batches of 1 to 9 rows
        (docs/python.md, batches of several sizes). With several numbers, (4, 16), a batch is padded to the next of them.
        A larger batch is compiled separately. A step that needs a program for each size is an error.
      maybe_dynamic_batch: the same, but such a step is compiled for each size, with a Remark that gives the reason.
      fsdp: further arguments of FullyShardedDataParallel and fully_shard, so that a call of theirs can be reused. An
        argument without effect here is a Remark, an unsupported one an error.

    Returns:
      A CompiledStep.

    Raises:
      ValueError: an option has a value that is not allowed; the message lists the allowed ones.
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
