"""Runs one rank's training step of an artifact, each kernel on the CPU and on an emulated GPU from the same memory.

`compare_step` is the heart. It reads the artifact as docs/artifact-format.md says and executes the plan's commands in
their order; matrix products are numpy's.
"""
import ctypes
import json
import math
import os
import re
import struct
import subprocess

import numpy as np
from simt import CheckFailed, Library, host

U = 2**-24  # the rounding of f32


def tolerance(chain, name):
    """Of the largest value of a result of element type `name` that is behind sums of `chain` terms.

    A GPU kernel computes each element as the CPU's does, so without sums there is none. A sum of n terms in f32 rounds
    n times, either way, and is off by sqrt(n) U of its magnitude. L lanes of their own, each of 1 / L of the sum, make
    it sqrt(n) / L: 32 U at most, because sums of more than 1,024 terms have eight lanes or more and the longest here
    has 65,536. What is stored as bf16 may be rounded to its neighbour.
    """
    if chain == 0 or name not in ("f32", "bf16"):
        return 0
    return min(math.sqrt(chain), 32) * U if name == "f32" else 2**-7


# That the artifacts' kernels are for.
CPU = "x86-64-v3"


def read(artifact, name):
    with open(os.path.join(artifact, f"{name}.json")) as file:
        return json.load(file)


def read_tensors(path):
    """{name: bytes} of a safetensors file."""
    with open(path, "rb") as file:
        header = json.loads(file.read(struct.unpack("<Q", file.read(8))[0]))
        data = file.read()
    return {name: data[slice(*entry["data_offsets"])] for name, entry in header.items() if name != "__metadata__"}


def read_types(kernels):
    """{symbol: element types of its operands and results} of the IR before code generation."""
    text = subprocess.run([host.SPMD_OPT, "--mlir-print-op-generic"], input=kernels, text=True, capture_output=True,
                          check=True).stdout
    types = {}
    lines = iter(text.splitlines())
    for line in lines:
        if found := re.search(r'"kernel\.\w+"\(.*symbol = "(\w+)"', line):
            indent = re.match(" *", line).group()
            while not (signature := re.search(r" : \((.*)\) -> (.*)$", line)):
                line = next(after for after in lines if after.startswith(indent + "})"))
            types[found.group(1)] = re.findall(r"tensor<(?:\d+x)*(\w+)[,>]", " ".join(signature.groups()))
    return types


def read_chains(kernels):
    """{symbol: how many terms are summed on the longest way to each result, sums of sums together} of the same IR."""
    chains, of_value = {}, {}
    sizes, attention, yielded = [], None, []
    for line in kernels.splitlines():
        if found := re.search(r"= kernel\.(cluster|segmented|attention|attention_backward)\b(.*)", line):
            kind, rest = found.groups()
            of_value, attention = {}, None
            if kind == "cluster":
                sizes = [int(size) for size in re.search(r"dims \[(.*?)\]", rest).group(1).split(",")]
            elif kind == "segmented":
                begins = [int(begin) for begin in re.search(r"segments \[(.*?)\]", rest).group(1).split(",")]
                sizes = [max(end - begin for begin, end in zip(begins, begins[1:]))]
            else:
                # A score and its gradient are sums over a head's elements. Then come those over keys; backward over
                # the queries of all heads that share keys, too.
                a = {name: int(value) for name, value in re.findall(r"(\w+) = (\d+)", rest.split(">")[0])}
                queries = a["qLen"] * a["heads"] // a["kvHeads"] if kind == "attention_backward" else 0
                attention = max(a["headDim"], a["vDim"]) + max(a["kvLen"], queries)
        if found := re.search(r'symbol = "(\w+)"', line):
            symbol = found.group(1)
            chains[symbol] = attention
        if found := re.match(r"\s*(%\w+)(?::\d+)? = (.*)", line):
            name, rest = found.groups()
            length = max((of_value.get(operand, 0) for operand in re.findall(r"%\w+", rest)), default=0)
            if reduced := re.match(r"kernel\.reduce <(\w+)> .* over \[(.*?)\]", rest):
                if reduced.group(1) not in ("max", "min"):
                    length += math.prod(sizes[int(dim)] for dim in reduced.group(2).split(","))
            of_value[name] = length
        if attention is None and (found := re.match(r"\s*kernel\.yield (.*?) : ", line)):
            chains[symbol] = [of_value.get(name, 0) for name in re.findall(r"%\w+", found.group(1))]
    return chains


def read_rows(library):
    """{symbol: of each argument how many elements of its rows are there and where the next row begins, or None} of a
    library of kernels (docs/artifact-format.md, spmd_kernel_table)."""
    table = ctypes.string_at(ctypes.addressof(ctypes.c_char.in_dll(library, "spmd_kernel_table"))).decode()
    rows = {}
    for symbol, _, *arguments in map(str.split, table.splitlines()):
        fields = [argument.split(":") for argument in arguments]
        rows[symbol] = [tuple(map(int, field[3].split("/"))) if len(field) > 3 else None for field in fields]
    return rows


def without_padding(content, rows, name):
    """The bytes of a result of element type `name` that kernels write."""
    if rows is None:
        return content
    size = np.dtype(host.DTYPES[name]).itemsize
    return np.ascontiguousarray(content.reshape(-1, rows[1] * size)[:, :rows[0] * size]).reshape(-1)


class Step:
    """The memory of a rank before the first step of a package, and the step's commands."""

    def __init__(self, artifact, package):
        self.manifest, self.plan = read(artifact, "manifest"), read(artifact, "train_step.plan")
        assert self.manifest["ranks"] == 1
        weights = read_tensors(os.path.join(package, "weights.safetensors"))
        batches = read_tensors(os.path.join(package, "reference.safetensors"))
        # What is read before it is written is not a number.
        self.memory = np.full(self.manifest["arena"]["bytes"] + 64, 0xFF, np.uint8)
        self.memory = self.memory[-self.memory.ctypes.data % 64:][:self.manifest["arena"]["bytes"]]
        units = {unit["name"]: unit for unit in self.manifest["units"]}
        for state in self.manifest["state"]:
            segments = units[state["unit"]]["segments"] if state["kind"] == "shard" else []
            dtype, name = host.DTYPES[state["dtype"]], state["state"]
            if state["kind"] != "replicated":
                self.view(state, dtype, state["numel"])[:] = state["init"] or 0
            elif state["init"] is not None:
                self.view(state, dtype, int(np.prod(state["shape"], dtype=np.int64)))[:] = state["init"]
            prefix = {"param": "", "buffer": "", "rng": "", "constant": "constant/"}.get(name, f"optimizer/{name}/")
            for tensor in segments or ([state] if state["kind"] == "replicated" else []):
                if data := weights.get(prefix + tensor["name"]):
                    begin = state["offset"] + (tensor["offset"] * dtype().itemsize if segments else 0)
                    self.memory[begin:begin + len(data)] = np.frombuffer(data, np.uint8)
        for batch in self.manifest["batch"]:
            data = batches[f"batch/0/{batch['name']}"]
            self.memory[batch["offset"]:batch["offset"] + len(data)] = np.frombuffer(data, np.uint8)
        for hyper in self.manifest["hyper"]:
            self.view(hyper, host.DTYPES[hyper["dtype"]], 1)[:] = hyper["value"]

    def view(self, entry, dtype, count):
        return self.memory[entry["offset"]:entry["offset"] + count * np.dtype(dtype).itemsize].view(dtype)

    def find(self, reference):
        """The bytes of a reference of the plan."""
        begin = self.plan["buffers"][reference["buffer"]]["offset"] + reference["offset"]
        return self.memory[begin:begin + reference["bytes"]]

    def multiply(self, command):
        """C = A B, or C + A B; with its epilogue."""
        is_gradient = command.get("activation") == "gelu_tanh_backward"
        assert command["dtype"] == "f32" and ("activation" not in command or is_gradient)

        def matrices(name, rows, columns, is_transposed):
            rows, columns = (columns, rows) if is_transposed else (rows, columns)
            data = self.find(command[name]).view(np.float32)
            strides = (4 * command.get(f"stride_{name}", 0), 4 * command[f"ld{name}"], 4)
            view = np.lib.stride_tricks.as_strided(data, (command.get("batch", 1), rows, columns), strides)
            return view.swapaxes(1, 2) if is_transposed else view

        m, n, k = (command[size] for size in "mnk")
        c = matrices("c", m, n, False)
        product = matrices("a", m, k, command["trans_a"]) @ matrices("b", k, n, command["trans_b"])
        if "bias" in command:
            product = product + self.find(command["bias"]).view(np.float32)
        if "residual" in command:
            residual = self.find(command["residual"]).view(np.float32)
            product = product + np.lib.stride_tricks.as_strided(residual, c.shape, c.strides)
        if is_gradient:
            saved = self.find(command["pre_activation"]).view(np.float32)
            x = np.lib.stride_tricks.as_strided(saved, c.shape, c.strides).astype(np.float64)
            tanh = np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))
            slope = x * (1 - tanh**2) * math.sqrt(2 / math.pi) * (1 + 3 * 0.044715 * x**2)
            product = (product * (0.5 * (1 + tanh + slope))).astype(np.float32)
        c[...] = product + (c if command["beta"] else 0)
        if of := command.get("bias_gradient_of"):
            summed = matrices("a", m, k, command["trans_a"]).sum(2) if of == "a" else (
                c if of == "c" else matrices("b", k, n, command["trans_b"])).sum(1)
            self.find(command["bias_gradient"]).view(np.float32)[:] = summed[0]


def compare(ours, theirs, name, chain):
    """Two results of element type `name` that are behind sums of `chain` terms."""
    ours, theirs = (a.view(host.DTYPES[name]) for a in (ours, theirs))
    wanted = host.widen(theirs).astype(np.float64) if name in ("f32", "bf16") else theirs
    if wanted.dtype.kind == "f":
        assert np.isfinite(wanted).all(), "CPU: not a number"
    host.compare([ours], [(wanted, ours.dtype)], tolerance(chain, name))


def arguments_of(command):
    """What a command refers to, in the order in which a plan has it: that of its kernel's arguments."""
    members = [value if isinstance(value, list) else [value] for value in command.values()]
    return [member for value in members for member in value if isinstance(member, dict) and "buffer" in member]


def compare_step(package, emulated, artifact, kernels):
    """Runs the step of a package as two artifacts, for targets emulate and host, both made from `kernels`, IR of
    --compile-to=kernels. Returns how many kernels and launches there were, and how many of those had the same bits."""
    step, types, chains = Step(emulated, package), read_types(kernels), read_chains(kernels)
    trips = {command["kernel"]: command["parallel"] for command in read(artifact, "train_step.plan")["commands"]
             if "kernel" in command}
    libraries = [os.path.join(folder, f"kernels.{CPU}.so") for folder in (emulated, artifact)]
    on_gpu, on_cpu = Library(libraries[0]), ctypes.CDLL(libraries[1])
    on_gpu.library.spmd_emulation_configure(1, 0, 0)
    rows = read_rows(on_cpu)
    launches = same = 0
    for number, command in enumerate(step.plan["commands"]):
        if command["op"] == "gemm":
            step.multiply(command)
        elif "kernel" in command:
            references = arguments_of(command)
            symbol, arguments = command["kernel"], [step.find(argument) for argument in references]
            assert len(types[symbol]) == len(arguments)
            written = [i for i, argument in enumerate(references) if "w" in argument["access"]]
            before = [arguments[i].copy() for i in written]

            def launch(library, trips):
                host._call(getattr(library, symbol), arguments, (0,), 0, trips)
                return [without_padding(arguments[i].copy(), rows[symbol][i], types[symbol][i]) for i in written]

            emulated = launch(on_gpu.library, command["parallel"])
            if message := on_gpu.library.spmd_emulation_error():
                raise CheckFailed(message.decode())
            for i, content in zip(written, before):
                arguments[i][:] = content
            expected = launch(on_cpu, trips[symbol])
            for i, ours, theirs in zip(written, emulated, expected):
                chain = chains[symbol] or 0
                if isinstance(chain, list):  # of the results, which are the last arguments
                    chain = chain[i - len(arguments)]
                try:
                    compare(ours, theirs, types[symbol][i], chain)
                except AssertionError as error:
                    place = f"command {number}, {symbol}, argument {i}, {command['loc']}"
                    raise AssertionError(f"{place}: {error}") from None
            same += all(ours.tobytes() == theirs.tobytes() for ours, theirs in zip(emulated, expected))
            launches += 1
        else:
            assert command["op"] in ("wait", "check_index"), command["op"]
    return on_gpu.counts().kernels, launches, same
