"""What one compiled training holds between calls."""
from __future__ import annotations

import threading
from typing import Any, Iterable

import torch

from ..capture.call import StepCall
from ..capture.world.held import Held
from ..remarks import remark
from ..run.processes import Processes
from ..run_error import RunError
from .agreement import StepAgreement
from .checkpoints import Checkpoints
from .live_state import LiveState, RanksState, UsersObjects
from .lost_values import LostValues
from .options import TrainingOptions
from .programs import Program
from .randomness import Randomness, read_draws


class TrainingState:
    """The parts of one training. A CompiledStep owns it; the functions of this package work on it.

    Attributes:
      name: the name of the step, for messages.
      options: what spmd.compile was given. `max_compiles`, `check_finite`, `dynamic` and `trainer_options` begin with it.
      max_compiles: the most programs that are compiled.
      check_finite: a loss that is not finite is an error.
      dynamic: the sizes of batches that one program serves; None: one size for each program, or the step needs that.
      trainer_options: arguments of each Trainer.
      lock: held while values move between Python and the ranks, and during a call.

      ranks: how many ranks; None before join() where the launcher decides.
      agreement: with the other processes; None before join().
      steps: steps taken.
      compiles: programs compiled since the last reset.

      programs: the programs that may serve a call, in the order in which they were compiled.
      current: the program that ran last; None: there is none.
      live: the tensors of model and optimizer while ranks hold their values; None: there are no ranks.
      structure: the ids of the modules and tensors of the model that the newest program was compiled for.
      single_sizes: keys of calls whose batch size no program for several sizes serves.

      randomness: where random numbers go on.
      checkpoints: those being written or loaded.
      lost_values: what a failure has left without values.
      unused_values: of iterators, what a call has taken and no step has used.
      refuses_equal_rows: if all processes give the same rows of the first batch, that is an error, and not a remark.
      unequal_batches: the shapes of the batches of the processes, as text; "": all have the same.
    """

    def __init__(self, name: str, options: TrainingOptions):
        self.name, self.options = name, options
        self.max_compiles, self.check_finite = options.compile.max_compiles, options.run.check_finite
        self.dynamic = options.step.dynamic
        self.trainer_options: dict[str, Any] = dict(options.run.trainer)
        self.lock = threading.RLock()
        self.ranks, self.steps, self.compiles = options.run.ranks, 0, 0
        self.agreement: StepAgreement | None = None
        self.programs: list[Program] = []
        self.current: Program | None = None
        self.live: LiveState | None = None
        self.structure: list[int] | None = None
        self.single_sizes: list[tuple[Any, ...]] = []
        self.randomness, self.checkpoints = Randomness(name), Checkpoints(self.lock)
        self.lost_values = LostValues()
        self.unused_values: list[tuple[Any, list[Any]]] = []
        self.unequal_batches = ""
        self.refuses_equal_rows = False

    @property
    def view(self) -> str:
        """What the step computes: "global" or "local"."""
        return self.options.step.view

    @property
    def batch_dims(self) -> dict[str, int | None]:
        """Which dim of a batch input counts samples, by its name; 0 where it is not named."""
        return self.options.step.batch_dims or {}

    @property
    def processes(self) -> Processes:
        """The processes of the job; after join()."""
        return self.agreement.processes

    @property
    def has_whole_batch(self) -> bool:
        """True if one process has the batch that the step computes on, and not the parts of several ranks."""
        return self.processes.world == 1 and (self.view == "global" or self.ranks == 1)

    def join(self) -> None:
        """Meets the other processes, if a launcher has started several; once."""
        if self.agreement is not None:
            return
        processes = Processes.find(self.options.run.launcher, self.trainer_options.get("timeout", 60))
        ranks = processes.world if self.ranks is None else self.ranks
        if ranks % processes.world:
            raise ValueError(f"expected ranks to be a multiple of the number of processes ({processes.world}), got {ranks}\n "
                             " hint: omit ranks to run one rank in each process")
        self.ranks = ranks
        self.trainer_options["launch"] = processes.launch
        self.agreement = StepAgreement(processes, self.batch_dims, self.trainer_options["batch"])

    def current_program(self) -> Program:
        """The program that ran last.

        Raises:
          RuntimeError: there is none yet.
        """
        if self.current is None:
            raise RuntimeError(f"{self.name} has not been called yet, so there is no program")
        return self.current

    def hand_over(self, call: StepCall, held: Held, ranks: RanksState) -> None:
        """Ranks hold the values from now on: those of the model and the optimizers of `call`, and of `held`."""
        self.live = LiveState(UsersObjects(call.model, call.optimizers, held), ranks, self.lock)

    def drop(self, programs: Iterable[Program]) -> None:
        """Ends programs that no call needs any more, and the ranks of those whose state nobody trains."""
        for program in list(programs):
            self.programs.remove(program)
            if all(p.trainer is not program.trainer for p in self.programs) and (
                    program.trainer is not program.home or all(p.home is not program.home for p in self.programs)):
                program.trainer.close()

    def lose_later(self, error: RunError) -> None:
        """Notes that a step has failed after the call of it returned."""
        if self.live is not None and self.live.lost is None:
            self.live.lose(error, self.steps - 1)

    def fetch_all(self) -> None:
        """Brings all values into model and optimizer, unless they are lost."""
        if self.live is not None and self.live.lost is None:
            self.live.fetch_all()

    def forget(self) -> None:
        """Ends the ranks and all programs: model and optimizer have the values."""
        try:
            self.checkpoints.finish(waits=True)
        except RunError as error:
            if self.live is None or not self.live.lost:
                raise
            remark(f"{self.name}: the checkpoint that was being written is not there: {error}")
        self.fetch_all()
        if self.live is not None:
            self.live.release()
            self.lost_values.take(self.live.lost_values)
        programs, self.programs = self.programs, []
        self.current = self.live = self.structure = None
        for program in programs:
            program.trainer.close()

    def draws(self) -> dict[str, torch.Tensor]:
        """Seed and step counter of random numbers: those of the ranks, or those with which ranks will begin."""
        return self.randomness.given if self.live is None else read_draws(self.live.trainer)
