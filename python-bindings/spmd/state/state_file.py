"""Files of other programs that have a state: torch.save's (.pt, .pth, .bin, .ckpt) and safetensors, with the keys that
checkpoints have: "fc.weight", "optimizer/exp_avg/fc.weight"."""
from __future__ import annotations

import os
import pickle
import re
import zipfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from ..models import DTYPES, tensor_names, without_wrappers
from ..remarks import remark
from ..tensor_info import TensorInfo
from .keys import name_in, with_name
from .source import FolderSource, Source

if TYPE_CHECKING:
    from ..capture.optimizer.optimizers import Optimizers

Rules = Sequence[tuple[str, str]]
_MODELS = ("model", "state_dict", "model_state_dict", "module")  # under which programs keep the model's,
_OPTIMIZERS = ("optimizer", "optimizer_state_dict", "optim")  # and the optimizer's state dict,
_STEPS = ("step", "global_step", "iter_num", "iteration", "iter")  # and the steps taken


class StateFile:
    """A file of torch.save or of safetensors, as Checkpoint is one of ours.

    Attributes:
      folder: the file.
      step: steps taken, where the file says so; else what its optimizer counts, else 0.
      tensors: what it has, by key. Optimizer state that is known by numbers is there after `bind`.
      notes: options of param groups.
      content: what torch.save was given; of safetensors a dict of tensors.

    Raises:
      ValueError: no state is in it; or more than tensors and plain values, which only a program that trusts it unpickles.
    """

    def __init__(self, file: str | os.PathLike, map_location: Any = None):
        self.folder, self.content = Path(file), _read(Path(file), map_location)
        self._names: list[str] | None = None
        self.refresh()

    def refresh(self) -> None:
        """Reads `content` again, which somebody has changed."""
        content, found = self.content, self.content
        if not isinstance(content, Mapping):
            raise ValueError(f"'{self.folder}' has a {type(content).__name__}, and no state dict\n  hint: "
                             "torch.save({\"model\": model.state_dict(), \"optimizer\": optimizer.state_dict()}, FILE)")
        if not _is_state_dict(content):
            name = next((name for name in _MODELS if _is_state_dict(content.get(name))), None)
            if name is None:
                raise ValueError(f"'{self.folder}' has no state dict of a model: looked for {', '.join(_MODELS)}; it has "
                                 f"{', '.join(map(str, content)) or 'nothing'}")
            found = content[name]
        self._values = {key: value for key, value in found.items() if isinstance(value, torch.Tensor)}
        optimizers = None if found is content else next((content[n] for n in _OPTIMIZERS if n in content), None)
        self._optimizers = [] if optimizers is None else optimizers if isinstance(optimizers, list) else [optimizers]
        self.has_optimizer = bool(self._optimizers) or any(key.startswith("optimizer/") for key in self._values)
        self.notes = {"param_groups": [group for part in self._optimizers for group in part.get("param_groups", ())]} \
            if self._optimizers else {}
        steps = (content.get(name) for name in _STEPS) if found is not content else ()
        self._said = next((value for value in steps if isinstance(value, int)), None)
        self._take_states()

    @property
    def step(self) -> int:
        counts = [int(value) for key, value in self._values.items() if key.startswith("optimizer/step/")]
        return self._said if self._said is not None else max(counts, default=0)

    def bind(self, model: torch.nn.Module, optimizers: Optimizers) -> None:
        """Names the optimizer's state, which the file may have by number: that of the parameter in its param groups."""
        names = {id(tensor): known[0] for _, tensor, known in tensor_names(model).values()}
        self._names = [names.get(id(parameter), "") for parameter in optimizers.parameters]
        self._take_states()

    def _take_states(self) -> None:
        first = 0
        for part in self._optimizers:
            known = [name for group in part.get("param_groups", ()) for name in group.get("param_names", ())]
            numbers = [number for group in part.get("param_groups", ()) for number in group.get("params", ())]
            for number, state in part.get("state", {}).items():
                name = number if isinstance(number, str) else known[number] if number < len(known) else \
                    self._names[first + number] if self._names is not None and first + number < len(self._names) else None
                for kind, value in state.items() if name else ():
                    value = torch.tensor(float(value)) if isinstance(value, (int, float)) and kind == "step" else value
                    if isinstance(value, torch.Tensor):
                        self._values[f"optimizer/{kind}/{name}"] = value
            first += len(numbers)
        self.tensors = {key: TensorInfo(key, "", DTYPES.get(value.dtype, str(value.dtype)), tuple(value.shape))
                        for key, value in self._values.items()}

    def read_torch(self, key: str) -> torch.Tensor:
        return self._values[key]

    def describe(self) -> str:
        return f"'{self.folder}'"


class Revised:
    """A checkpoint, or a file, with other keys. `rename` returns the new key for a key of the source.

    Raises:
      ValueError: two tensors get one name.
    """

    def __init__(self, source: Source, rename: Callable[[str], str]):
        self._source, self._rename = source, rename
        self.folder, self.notes, self.describe = source.folder, source.notes, source.describe
        self._take()

    def _take(self) -> None:
        self._keys: dict[str, str] = {}
        for key in self._source.tensors:
            new = self._rename(key)
            other = self._keys.setdefault(new, key)
            if other != key:
                raise ValueError(f"{self.describe()}: revise_keys maps both {other!r} and {key!r} to {new!r}")
        self.tensors = {new: self._source.tensors[old] for new, old in self._keys.items()}

    @property
    def step(self) -> int:
        return self._source.step

    @property
    def has_optimizer(self) -> bool:
        return any(key.startswith("optimizer/") for key in self.tensors)

    def bind(self, model: torch.nn.Module, optimizers: Optimizers) -> None:
        if isinstance(self._source, (StateFile, Revised)):
            self._source.bind(model, optimizers)
            self._take()

    def read_torch(self, key: str) -> torch.Tensor:
        return self._source.read_torch(self._keys[key])

    def read_file(self, name: str) -> bytes:
        return self._source.read_file(name)


def by_names_of(model: torch.nn.Module, source: Source) -> Source:
    """The source with the names of the model's tensors. Wrappers of modules (checkpoint_wrapper, torch.compile) may have
    changed names in either. Without a difference, the source itself."""
    own = {name for _, _, names in tensor_names(model).values() for name in names}
    plain = {without_wrappers(name): name for name in own}

    def rename(key: str) -> str:
        if key.startswith("rng/") or name_in(key) in own:
            return key
        new = with_name(key, plain.get(without_wrappers(name_in(key)), name_in(key)))
        return key if new in source.tensors else new

    return Revised(source, rename) if any(rename(key) != key for key in source.tensors) else source


def opened(place: str | os.PathLike, map_location: Any, revise_keys: Rules, callback: Callable[[Any], Any] | None,
           open_folder: Callable[[], FolderSource]) -> Source:
    """The state at a place, a folder of checkpoints or a file, as a caller of load_checkpoint() wants it."""
    if Path(place).is_file():
        found: Source = StateFile(place, map_location)
        if callback is not None:
            callback(found.content)
            found.refresh()
    else:
        if map_location is not None and str(map_location) not in ("cpu", "default"):
            remark(f"map_location is {map_location!r}, and has no effect on a folder of checkpoints: its values go to the "
                   "ranks, or into the tensors that are there")
        found = open_folder()
        if callback is not None:
            callback(found)
    rules = [(re.compile(pattern), replacement) for pattern, replacement in revise_keys]

    def rename(key: str) -> str:
        name = name_in(key)
        for pattern, replacement in rules if not key.startswith("rng/") else ():
            name = pattern.sub(replacement, name)
        return with_name(key, name)

    changes = any(pattern.search(name_in(key)) for key in found.tensors for pattern, _ in rules)
    return Revised(found, rename) if changes else found


def _is_state_dict(value: Any) -> bool:
    return isinstance(value, Mapping) and any(isinstance(v, torch.Tensor) for v in value.values())


def _read(file: Path, map_location: Any) -> Any:
    with open(file, "rb") as stream:
        head = stream.read(9)
    if head[8:9] == b"{":
        from safetensors.torch import load_file
        return load_file(file)
    if zipfile.is_zipfile(file):
        with zipfile.ZipFile(file) as archive:
            if any(name.endswith("archive_format") or "/models/" in name for name in archive.namelist()):
                raise ValueError(f"'{file}' is a model of torch.export, and no state dict\n  hint: spmd.capture takes it as the "
                                 "model of a step; of its values, torch.export.load(FILE).state_dict is a state dict")
    try:
        return torch.load(file, map_location="cpu" if map_location in (None, "default") else map_location,
                          weights_only=True)
    except (pickle.UnpicklingError, RuntimeError, EOFError) as error:
        why = str(error).strip().splitlines()[0]
        if "Weights only load failed" in str(error) or "weights_only" in str(error):
            raise ValueError(f"'{file}' has more than tensors and plain values, which only a program that trusts it may load"
                             "\n  hint: there, state = torch.load(FILE, weights_only=False), and torch.save of its state "
                             "dicts alone: {\"model\": …, \"optimizer\": …}") from error
        raise ValueError(f"'{file}' is no file of torch.save or of safetensors: {why}") from error
