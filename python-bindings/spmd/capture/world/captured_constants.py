"""What a step's code reads from objects, dicts and modules, and a graph holds as constants: a trainer's weight of a
loss, the rate of a dropout, an entry of a configuration.

The bytecode tells what is read: `self.config.temperature`, `OPTIONS["scale"]`, `args.alpha`. Looked through are the step,
the methods of the user's objects and the user's functions that it names, and the forward() of each module. Of an object that
the step hands on, and of a dict or list that it does more with than to read an entry by a constant, all numbers count as
read. Attributes and entries that a class computes are computed again; arrays of numpy are compared by their bytes. What is
reached in other ways (an attribute of what a library's function returns) is not seen.
"""
from __future__ import annotations

import argparse
import collections.abc
import functools
import hashlib
import inspect
import sys
import types
from typing import Any, Callable, Iterable, Mapping, NamedTuple

import torch

from ...torch_api.modules import children_of
from ...torch_api.tensors import version_of
from .grown_lists import KINDS, Grown
from .held import Held, named_modules, whole
from .host_state import host_state
from .leaked_values import LeakedValue, Table, form_of_tree, is_left, is_left_tree
from .paths import attribute_path, entry_path
from .read_paths import Item, read_paths
from .settings import UNSET, Setting, is_flag
from .user_code import has_users_class, is_users_class, is_users_file
from .walk import NUMBERS

_NOTHING = object()
_CONTAINERS = (dict, list, tuple, collections.deque, collections.UserDict, collections.UserList, collections.ChainMap,
               types.MappingProxyType)
_GROWS = (["append"], ["extend"])  # steps of a path
_LONGEST = 16  # of lists of numbers that are compared whole


class CapturedConstant(NamedTuple):
    """One value: where it was read, how to read it again, what it was."""

    path: str
    get: Callable[[], Any]
    value: Any
    version: int | None  # of a tensor


def changed(values: list[CapturedConstant]) -> CapturedConstant | None:
    """The first that is no longer what it was."""
    for constant in values:
        now = constant.get()
        if now is not constant.value and not (
                isinstance(constant.value, (*NUMBERS, tuple, types.MethodType)) and type(now) is type(constant.value)
                and (now == constant.value or (now != now and constant.value != constant.value))):
            return constant
        if constant.version is not None and version_of(now) != constant.version:
            return constant
    return None


def are_alike(values: list[CapturedConstant], others: list[CapturedConstant]) -> bool:
    """True when a step that reaches other objects of the same form reads the same from them: equal numbers, in objects
    of the same classes."""
    if [v.path for v in values] != [v.path for v in others]:
        return False
    return all(changed([one._replace(get=lambda other=other: other.value)]) is None
               or type(one.value) is type(other.value) and not isinstance(one.value, (torch.Tensor, tuple, *NUMBERS))
               and getattr(one.value, "__func__", None) is getattr(other.value, "__func__", None)
               and not isinstance(one.value, (types.FunctionType, types.BuiltinFunctionType, type))
               for one, other in zip(values, others))


class EarlierCalls(NamedTuple):
    """What earlier calls of a step have left. `is_read`: whether the trace has read a tensor that an earlier call has left, by its
    path; of the others the form is compared. `grown`: lists of which it matters whether they are empty, where bytecode does not
    say: what was put into an empty list may have been appended, or put at its front, or have replaced what was in it."""

    is_read: Callable[[str, torch.Tensor], bool] = lambda path, tensor: True
    grown: Iterable[Grown] = ()


def captured_constants(step: Callable, model: torch.nn.Module, held: Held = Held(),
                       arguments: Mapping[str, Any] = types.MappingProxyType({}), hooks: Iterable[Callable] = (),
                       earlier: EarlierCalls = EarlierCalls()) -> list[CapturedConstant]:
    """Those of a step, of its `arguments` (the Python values among them, by path), of its `hooks` and other functions that run within,
    and of the modules of its model and of those that are held; their tensors, what is held, and the modes of modules are not among
    them."""
    tensors = (*model.parameters(), *model.buffers(), *(tensor for _, tensor in held.tensors.values()))
    reader = _Reader(set(map(id, tensors)), earlier.is_read)
    step = inspect.unwrap(step)
    owner = getattr(step, "__self__", None)
    function = getattr(step, "__func__", step)
    if not isinstance(function, types.FunctionType) and callable(step):
        owner, function = step, type(step).__call__
    objects = {path: value for path, value in arguments.items() if not isinstance(value, NUMBERS)}
    reader.read(function, owner, "self", objects)
    names = getattr(getattr(function, "__code__", None), "co_varnames", ())
    for path, value in objects.items():
        if path not in names:  # in a container
            reader.read_code(path, value)
    for function in hooks:
        name = getattr(function, "__qualname__", type(function).__qualname__)
        if not reader.read_code(name, function) and has_users_class(function):
            reader.read(type(function).__call__, function, name)
    modules = [(path or "model", module) for path, module in named_modules(model, whole(model, held))]
    for path, module in modules:
        reader.read_module(module, path)
    for place, root in held.watched.values():
        reader.read_code(place.path, root)
    reader.read_of_parameters(modules)
    are_empty = [CapturedConstant(f"whether {one.path} is empty", one.is_empty, one.is_empty(), None) for one in earlier.grown
                 if id(one.now()) not in reader.lists]
    return [*reader.found.values(), *are_empty]


def slots_of(left: Iterable[LeakedValue], modules: Mapping[str, torch.nn.Module], held: Held,
             is_read: Callable[[str, torch.Tensor], bool]) -> list[CapturedConstant]:
    """What is in the places where a step leaves something, before a call: it may ask for that in ways that no bytecode
    tells (hasattr, getattr). Of a tensor that is read at every call (held), or that an earlier call has left and that the
    trace has not read, the form is compared."""
    ids = {id(tensor) for place, tensor in held.tensors.values() if place is not None}
    found = []
    for one in left:
        entries = one.owner.entries if isinstance(one.owner, Table) else vars(modules[one.owner])
        path, get = f"{one.path} at the beginning", functools.partial(entries.get, one.key, _NOTHING)
        value = get()
        if isinstance(value, torch.Tensor) and (id(value) in ids or is_left(value) and not is_read(path, value)):
            get = functools.partial(_form_of_tensor, get)
            found.append(CapturedConstant(path, get, get(), None))
        elif is_left_tree(value):
            get = functools.partial(_form_of_tree, get, False)  # numbers may be of the last call
            found.append(CapturedConstant(path, get, get(), None))
        else:
            is_own = value is one.value  # a parameter, whose values are no matter
            version = version_of(value) if isinstance(value, torch.Tensor) and not is_own else None
            found.append(CapturedConstant(path, get, value, version))
    return found


def begun_with(settings: Iterable[Setting], modules: Mapping[str, torch.nn.Module]) -> list[CapturedConstant]:
    """What is in the attributes of modules that a step sets, before a call: as of slots_of(), it may ask for that in ways that no
    bytecode tells. Of a shape it is whether there is one, for most differ from batch to batch."""
    def form(attributes: dict[str, Any], name: str) -> Any:
        value = attributes.get(name, UNSET)
        return type(value).__name__ if isinstance(value, tuple) or not is_flag(value) else value
    found = []
    for one in settings:
        module = modules.get(one.module) or one.found()
        if module is not None and not one.is_parameter and one.name != "training":
            get = functools.partial(form, vars(module), one.name)
            found.append(CapturedConstant(f"{one.module or 'model'}.{one.name} at the beginning", get, get(), None))
    return found


class _Reader:
    def __init__(self, ignored: set[int], is_read: Callable[[str, torch.Tensor], bool]):
        self._is_read = is_read
        self.found: dict[str, CapturedConstant] = {}
        self.lists: set[int] = set()  # their ids
        self._ignored = ignored
        self._read: set[tuple[int, int]] = set()
        self._of_parameters: dict[tuple[Any, ...], None] = {}  # what functions read of what they are called with
        self._classes: dict[type, str] = {}  # of which the step may make objects

    def read_module(self, module: torch.nn.Module, path: str) -> None:
        """What its forward() reads, and which function that is."""
        own = vars(module).get("forward")
        self.read(getattr(own, "__func__", own) or type(module).forward, module, path)

    def read_of_parameters(self, modules: list[tuple[str, torch.nn.Module]]) -> None:
        """A module may be what a function is called with, which no bytecode tells, and an object of a class what a method
        is: what one reads of a parameter counts as read of every module and class that has it."""
        done: set[tuple[Any, ...]] = set()
        while todo := [steps for steps in self._of_parameters if steps not in done]:
            done.update(todo)
            for steps in todo:
                for cls, path in list(self._classes.items()):
                    if isinstance(steps[0], str) and not isinstance(_static(cls, steps[0]), types.FunctionType):
                        self._follow(cls, path, list(steps))
                for path, module in modules:
                    attribute = _static(type(module), steps[0])
                    code = getattr(attribute, "fget", getattr(attribute, "__func__", attribute))
                    if steps[0] in vars(module) or isinstance(code, types.FunctionType) \
                            and code.__module__.split(".")[0] != "torch":
                        self._follow(module, path, list(steps))

    def read_code(self, path: str, value: Any) -> bool:
        """Of a module everything that its modules' forward() read, of a user's function what it reads, of a partial() all
        that is bound, too; False for what is none of these."""
        if isinstance(value, torch.nn.Module):
            for name, module in value.named_modules():
                self.read_module(module, f"{path}.{name}" if name else path)
        elif _is_users(value):
            self.read(value, None, path)
        elif isinstance(value, types.MethodType) and _is_users(value.__func__):
            self.read(value.__func__, value.__self__, path)
        elif isinstance(value, type) and is_users_class(value):
            self._read_class(path, value)
        elif isinstance(value, functools.partial):
            self.read_code(f"{path}.func", value.func)
            for key, bound in (*enumerate(value.args), *value.keywords.items()):
                if not isinstance(bound, (torch.Tensor, torch.optim.Optimizer, *NUMBERS)):
                    self.read_code(entry_path(path, key), bound)
        else:
            return False
        return True

    def read(self, function: Any, owner: Any, label: str, arguments: Mapping[str, Any] = types.MappingProxyType({})) -> None:
        """Everything that `function` reads, with `owner` as its first argument, called `label`; of `arguments`, by their
        names, what it reads of them."""
        function = inspect.unwrap(function) if callable(function) else function
        code = getattr(function, "__code__", None)
        if code is None or (id(function), id(owner)) in self._read:
            return
        self._read.add((id(function), id(owner)))
        cells = dict(zip(code.co_freevars, function.__closure__ or ()))
        own = code.co_varnames[0] if owner is not None and code.co_argcount else None
        for (is_global, root), *steps in read_paths(code):
            if is_global:
                if root in function.__globals__:
                    self._take(root, functools.partial(function.__globals__.get, root), steps, in_table=True)
            elif root == own:
                self._follow(owner, label, steps)
            elif root in cells:
                self._take(root, functools.partial(getattr, cells[root], "cell_contents", None), steps)
            elif root in arguments and steps:
                self._follow(arguments[root], root, steps)
            elif root in arguments:
                self.read_code(root, arguments[root])
            elif steps and not isinstance(steps[0], Item) and root in inspect.signature(function).parameters:
                self._of_parameters[tuple(steps)] = None

    def _read_class(self, path: str, cls: type) -> None:
        """What the methods of a class read, of which the step may make an object, or apply it (autograd.Function)."""
        self._classes.setdefault(cls, path)
        for base in cls.__mro__:
            for attribute in vars(base).values() if is_users_class(base) else ():
                code = getattr(attribute, "fget", getattr(attribute, "__func__", attribute))
                if _is_users(code):
                    self.read(code, None, path)

    def _take(self, path: str, get: Callable[[], Any], steps: list[Any], in_table: bool = False) -> None:
        """Notes the value at a path, and goes on from it. `in_table`: an attribute, a global or an entry of a dict has it."""
        value = get()
        if type(value) in KINDS:
            self.lists.add(id(value))
        if isinstance(value, types.ModuleType):
            if not is_users_file(getattr(value, "__file__", None) or "<"):
                return
        elif isinstance(value, torch.Tensor):
            if id(value) in self._ignored:
                return
            if is_left(value) and not self._is_read(path, value):
                form = functools.partial(_form_of_left, get)
                self.found.setdefault(path, CapturedConstant(path, form, form(), None))
            else:
                self.found.setdefault(path, CapturedConstant(path, get, value, version_of(value)))
            return
        elif type(value) in KINDS and steps in _GROWS:  # what is in it is no matter, nor which one it is
            kind = functools.partial(_kind_of, get) if in_table else get
            self.found.setdefault(f"{path}.append", CapturedConstant(f"{path}.append", kind, kind(), None))
            return
        elif is_left_tree(value) and steps and isinstance(steps[0], Item):  # each call may leave another one
            entry = functools.partial(_of, get, _entry, steps[0].key)
            self._take(entry_path(path, steps[0].key), entry, steps[1:], in_table=isinstance(value, dict))
            return
        elif is_left_tree(value):
            form = functools.partial(_form_of_tree, get, True)
            self.found.setdefault(path, CapturedConstant(path, form, form(), None))
        if not self.read_code(path, value) and callable(value) and has_users_class(value) and not steps:
            self.read(type(value).__call__, value, path)
        self._follow(value, path, steps)

    def _take_computed(self, path: str, get: Callable[[], Any], steps: list[Any]) -> None:
        """An attribute or entry that a class computes, maybe as another object each time: the path is read again from there
        on, and what is compared are numbers."""
        value = get()
        for step in steps:
            if isinstance(value, (torch.Tensor, torch.nn.Module, torch.optim.Optimizer, *NUMBERS)):
                break
            is_item = isinstance(step, Item)
            path = entry_path(path, step.key) if is_item else attribute_path(path, step)
            get = functools.partial(_of, get, _entry if is_item else _attribute, step.key if is_item else step)
            value = get()
        if not isinstance(value, NUMBERS):
            self.read_code(path, value)

    def _read_hook(self, value: Any, name: str, path: str) -> None:
        """What a method of a user's class reads, if it has one of that name."""
        hook = getattr(type(value), name, None)
        if _is_users(hook):
            self.read(hook, value, path)

    def _follow(self, value: Any, path: str, steps: list[Any]) -> None:
        if not steps or value is None or isinstance(value, (torch.Tensor, torch.optim.Optimizer, *NUMBERS)):
            return
        step, *rest = steps
        if isinstance(step, Item):
            is_mapping = isinstance(value, collections.abc.Mapping)  # of which [] may make an entry
            entry = functools.partial(value.get if is_mapping else functools.partial(_entry, value), step.key)
            if isinstance(value, _CONTAINERS):
                self._take(entry_path(path, step.key), entry, rest, in_table=isinstance(value, dict))
            elif hasattr(type(value), "__getitem__") and not isinstance(value, torch.nn.Module):
                self._take_computed(entry_path(path, step.key), entry, rest)
            for hook in ("__getitem__", "get"):
                self._read_hook(value, hook, path)
            return
        own = getattr(value, "__dict__", {})
        if step in own and not isinstance(own[step], (classmethod, staticmethod)):
            if step != "training" or not isinstance(value, torch.nn.Module):
                self._take(attribute_path(path, step), functools.partial(own.get, step), rest, in_table=True)
        elif isinstance(value, torch.nn.Module) and step in children_of(value):
            self._follow(children_of(value)[step], attribute_path(path, step), rest)
        else:
            self._follow_class(value, path, step, rest)

    def _follow_class(self, value: Any, path: str, step: str, rest: list[Any]) -> None:
        """An attribute that the class of an object, or one of a class's bases, has or computes."""
        cls = value if isinstance(value, type) else type(value)
        attribute = _static(cls, step)
        method = attribute.fget if isinstance(attribute, property) else attribute
        if isinstance(attribute, (classmethod, staticmethod)):
            if _is_users(attribute.__func__):
                self.read(attribute.__func__, cls if isinstance(attribute, classmethod) else None, path)
        elif isinstance(method, types.FunctionType):
            if isinstance(value, torch.nn.Module) or _is_users(method):
                self.read(method, value, path)
        elif attribute is not None and (isinstance(attribute, types.MemberDescriptorType)
                                        or not hasattr(type(attribute), "__get__")):  # of __slots__, or the class's own
            self._take(attribute_path(path, step), functools.partial(getattr, value, step, None), rest)
        elif not isinstance(value, torch.nn.Module) and (
                hasattr(type(value), "__getattr__") if attribute is None else has_users_class(attribute)):
            self._take_computed(attribute_path(path, step), functools.partial(_attribute, value, step), rest)
            self._read_hook(value, "__getattr__", path)


def _static(cls: type, name: str) -> Any:
    return inspect.getattr_static(cls, name, None)


def _is_users(function: Any) -> bool:
    return isinstance(function, types.FunctionType) and is_users_file(function.__code__.co_filename)


def _forward_of(module: torch.nn.Module) -> Any:
    return vars(module).get("forward", type(module).forward)


def _has_attributes(value: Any) -> bool:
    return has_users_class(value) or isinstance(value, (argparse.Namespace, types.SimpleNamespace, collections.UserList))


def _holds_numbers(value: Any) -> bool:
    return isinstance(value, (set, *_CONTAINERS)) or not callable(value) and _has_attributes(value)


def _is_array(value: Any) -> bool:
    numpy = sys.modules.get("numpy")
    return numpy is not None and isinstance(value, (numpy.ndarray, numpy.generic)) and not value.dtype.hasobject


def _digest(get: Callable[[], Any]) -> tuple[Any, ...]:
    """Of an array's values."""
    value = get()
    return (str(value.dtype), value.shape, hashlib.sha256(value.tobytes()).digest()) if _is_array(value) else (value,)


def _all_numbers(path: str, value: Any) -> tuple[Any, ...]:
    """Those in it, and small arrays, by where they are. An iterator or a generator in it is no part of it."""
    return tuple((str(watched), number)
                 for watched, number in host_state({path: value}, _has_attributes, tensors=False).items()
                 if isinstance(number, (bytes, *NUMBERS)))


def _entry(values: Any, key: Any) -> Any:
    try:
        return values[key]
    except Exception:  # the step is told
        return _NOTHING


def _of(get: Callable[[], Any], read: Callable[[Any, Any], Any], what: Any) -> Any:
    return read(get(), what)


def _numbers_at(value: Any, path: str) -> tuple[Any, ...]:
    return _all_numbers(path, value)


def _form_of_tensor(get: Callable[[], Any]) -> Any:
    value = get()
    return (value.shape, value.dtype, value.requires_grad, value.device) if isinstance(value, torch.Tensor) else value


def _form_of_tree(get: Callable[[], Any], with_numbers: bool) -> Any:
    return form_of_tree(get(), with_numbers)


def _kind_of(get: Callable[[], Any]) -> type:
    return type(get())


def _form_of_left(get: Callable[[], Any]) -> Any:
    """Of a tensor that a call has left; anything else is what it is."""
    value = get()
    return ("left", value.shape, value.dtype) if is_left(value) else value


def _attribute(value: Any, name: str) -> Any:
    try:
        return getattr(value, name)
    except Exception:
        return _NOTHING
