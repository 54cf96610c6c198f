"""The kernels of ../host/kernels as cases: what its tests pass to `check`, collected instead of run.

All kernels of a list of cases are compiled at once, which is what makes it quick.
"""
import contextlib
import importlib
import inspect
import itertools
import random
import re
import subprocess

import numpy as np
from simt import host


class Case:
    """A kernel, what it is given, and what it must give."""

    def __init__(self, name, ir, inputs, expected, trips, coords=(0,), tolerance=2e-6, alias=(), cpus=None):
        self.name, self.ir, self.inputs, self.trips = name, ir, inputs, trips
        self.outputs = [(want.shape, dtype) for want, dtype in expected]
        self.expected, self.coords, self.tolerance, self.alias = expected, coords, tolerance, list(alias)
        self.symbol = None

    def differs(self, results):
        """Why `results` are wrong, or None."""
        try:
            host.compare(results, self.expected, self.tolerance)
        except AssertionError as difference:
            return str(difference)
        return None


class NotChecked(Exception):
    """The test does something else than `check`, or is of where a CPU's tensors lie."""


def _parameters(test):
    """Keyword arguments of each run of a parametrized test."""
    axes = []
    for mark in getattr(test, "pytestmark", []):
        if mark.name == "parametrize":
            names = [n.strip() for n in mark.args[0].split(",")] if isinstance(mark.args[0], str) else mark.args[0]
            axes.append([dict(zip(names, v if len(names) > 1 else [v])) for v in mark.args[1]])
    for combination in itertools.product(*axes):
        yield {k: v for part in combination for k, v in part.items()}


@contextlib.contextmanager
def _recording(cases):
    """`check` makes a case of what it is given; `cases` learns it. Only for modules that are not yet loaded."""

    def record(*args, **kwargs):
        if "shifts" in kwargs:
            raise NotChecked
        cases.append(Case("", *args, **kwargs))
        return [np.nan_to_num(want).astype(dtype) for want, dtype in cases[-1].expected]

    def refuse(*args, **kwargs):
        raise NotChecked

    kept = host.check, host.compile_kernels
    host.check, host.compile_kernels = record, refuse
    try:
        with np.errstate(over="ignore"):
            yield
    finally:
        host.check, host.compile_kernels = kept


def collect(modules):
    """Cases of the tests of these modules; tests that do not use `check` are left out."""
    cases = []
    with _recording(cases):
        for module in modules:
            loaded = importlib.import_module(module)
            for name, test in inspect.getmembers(loaded, inspect.isfunction):
                if not name.startswith("test_") or test.__module__ != module:
                    continue
                for parameters in _parameters(test):
                    known = len(cases)
                    try:
                        test(**parameters)
                    except NotChecked:
                        break
                    for case in cases[known:]:
                        case.name = f"{module}.{name}{list(parameters.values()) or ''}"
    return cases


def call(tests):
    """For each of `tests`, calls like `test_cluster.test_softmax(9, 100)`, the cases of what it checks; of several the
    names are NAME[0], NAME[1], ... Also other functions of the modules."""
    found, cases = [], []
    with _recording(cases):
        modules = {name: importlib.import_module(name) for name in sorted({test.split(".")[0] for test in tests})}
        for test in tests:
            known = len(cases)
            eval(test, {"np": np, **modules})
            found.append(cases[known:])
            for i, case in enumerate(found[-1]):
                case.name = f"{test}[{i}]" if len(found[-1]) > 1 else test
    return found


def random_clusters(count, seed=0):
    """Random clusters of ../host/kernels/test_random_clusters.py."""
    from test_random_clusters import Program
    rng, data = random.Random(seed), np.random.default_rng(seed)
    cases = []
    for i in range(count):
        program = Program(rng, data)
        scale = max(1.0, max(np.abs(v).max() for _, v in program.values))
        case = Case(f"random cluster {i}", program.function("f"), program.inputs,
                    [(want, np.float32) for want in program.expected], int(np.prod(program.dims[:program.parallel])))
        smallest = min(max(np.max(np.abs(want), initial=1e-30), 1e-30) for want in program.expected)
        case.tolerance = 2e-6 * scale * len(program.values) / smallest
        cases.append(case)
    return cases


def outline(cases):
    """One module of all cases; each learns the symbol of its kernel."""
    functions = []
    for i, case in enumerate(cases):
        assert case.ir.count("func.func @f(") == 1
        functions.append(case.ir.replace("func.func @f(", f"func.func @f{i}("))
    result = subprocess.run([host.SPMD_OPT, "--spmd-outline-kernels"], input="\n".join(functions), text=True,
                            capture_output=True)
    assert result.returncode == 0, result.stderr
    for part in re.split(r"(?=func\.func @f\d+\()", result.stdout)[1:]:
        symbols = re.findall(r'symbol = "(k\d+)"', part)
        cases[int(re.match(r"func\.func @f(\d+)", part).group(1))].symbol = symbols[0]
        assert len(symbols) == 1
    return result.stdout


def lower(module, device="chip=sm_90"):
    """GPU kernels of a module with symbols, for a device: options of spmd-lower-gpu-kernels."""
    result = subprocess.run([host.SPMD_OPT, f"--spmd-lower-gpu-kernels={device}"], input=module, text=True,
                            capture_output=True)
    assert result.returncode == 0, result.stderr
    return result.stdout


def grids(kernels):
    """Blocks of each kernel."""
    return {symbol: int(blocks) for symbol, blocks in
            re.findall(r"gpu\.func @(\w+)\(.*?known_grid_size = array<i32: (\d+)", kernels)}
