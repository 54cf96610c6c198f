"""Random clusters against numpy: stages, maps, accumulators in any combination; every CPU, any cut."""
import random

import numpy as np
import pytest
from harness import compile_kernels, run, runnable_cpus, tensor

PROGRAMS = 40


class Program:
    """One cluster: random sizes, operands over random dims in random order, a chain of ops and reductions."""

    def __init__(self, rng, data):
        self.rng = rng
        rank = rng.randrange(1, 5)
        self.dims = [rng.choice([1, 2, 3, 5, 16, 17, 20, 35]) for _ in range(rank)]
        self.parallel = rng.randrange(0, rank + 1)
        self.inputs, self.ins, self.body = [], [], []
        self.values = []  # (name, array over the whole space with size-1 dims where constant)
        for i in range(rng.randrange(1, 4)):
            used = [d for d in range(rank) if rng.random() < 0.75]
            rng.shuffle(used)
            array = data.standard_normal([self.dims[d] for d in used]).astype(np.float32)
            self.inputs.append(array)
            self.ins.append(f"%a{i} = %x{i} at {self.map(used)} : {tensor(array)}")
            order = sorted(range(len(used)), key=lambda k: used[k])
            wide = array.transpose(order).reshape([self.dims[d] if d in used else 1 for d in range(rank)])
            self.values.append((f"%a{i}", wide.astype(np.float64)))
        for k in range(rng.randrange(1, 9)):
            self.step(k)
        self.outputs, self.expected, yields = [], [], []
        for name, array in rng.sample(self.values, min(len(self.values), rng.randrange(1, 4))):
            # All dims the value varies along, all parallel ones, perhaps more.
            used = [d for d in range(rank) if array.shape[d] > 1 or d < self.parallel or rng.random() < 0.3]
            if rng.random() < 0.3:
                rng.shuffle(used)
            want = np.broadcast_to(array, [self.dims[d] if d in used else 1 for d in range(rank)])
            want = want.reshape([self.dims[d] for d in sorted(used)])
            want = want.transpose([sorted(used).index(d) for d in used])
            self.expected.append(want.copy(order="C"))
            self.outputs.append(f"at {self.map(used)} : {tensor(want.astype(np.float32))}")
            yields.append(name)
        self.body.append(f"kernel.yield {', '.join(yields)} : {', '.join(['f32'] * len(yields))}")

    def map(self, used):
        names = ", ".join(f"d{d}" for d in range(len(self.dims)))
        terms, stride = [], 1
        for d in reversed(used):
            terms.append(f"d{d} * {stride}")
            stride *= self.dims[d]
        return f"({names}) -> ({' + '.join(terms) or '0'})"

    def step(self, k):
        name = f"%v{k}"
        sequential = list(range(self.parallel, len(self.dims)))
        kind = self.rng.randrange(4)
        if kind == 0 and sequential:
            source, array = self.rng.choice(self.values)
            over = sorted(self.rng.sample(sequential, self.rng.randrange(1, len(sequential) + 1)))
            op = self.rng.choice(["add", "max", "min"])
            self.body.append(f"{name} = kernel.reduce <{op}> {source} over {over} : f32")
            count = np.prod([self.dims[d] for d in over if array.shape[d] == 1])
            axes = tuple(over)
            value = {"add": lambda: array.sum(axes, keepdims=True) * count,
                     "max": lambda: array.max(axes, keepdims=True), "min": lambda: array.min(axes, keepdims=True)}[op]()
            if op == "add":  # keep values of order 1
                scale = 1 / np.prod([self.dims[d] for d in over])
                self.body.append(f"%c{k} = arith.constant {scale} : f32")
                self.body.append(f"%s{k} = arith.mulf {name}, %c{k} : f32")
                name, value = f"%s{k}", value * scale
        elif kind == 1:
            d = self.rng.randrange(len(self.dims))
            self.body += [f"%i{k} = kernel.index {d}", f"%j{k} = arith.index_cast %i{k} : index to i32",
                          f"{name} = arith.sitofp %j{k} : i32 to f32"]
            value = np.arange(self.dims[d],
                              dtype=np.float64).reshape([-1 if e == d else 1 for e in range(len(self.dims))])
        else:
            (x, a), (y, b) = self.rng.choice(self.values), self.rng.choice(self.values)
            op, value = self.rng.choice([("addf", a + b), ("subf", a - b), ("maximumf", np.maximum(a, b))])
            self.body.append(f"{name} = arith.{op} {x}, {y} : f32")
        self.values.append((name, value))

    def function(self, name, symbol="k0"):
        args = ", ".join(f"%x{i}: {tensor(a)}" for i, a in enumerate(self.inputs))
        types = ", ".join(tensor(e.astype(np.float32)) for e in self.expected)
        results = ", ".join(f"%r#{i}" for i in range(len(self.expected)))
        body = "\n".join(self.body)
        return f"""func.func @{name}({args}) -> ({types}) {{
          %r:{len(self.expected)} = kernel.cluster dims {self.dims} parallel {self.parallel}
            ins({', '.join(self.ins)}) outs({', '.join(self.outputs)})
            attributes {{symbol = "{symbol}"}} {{
            {body}
          }}
          return {results} : {types}
        }}"""


@pytest.mark.parametrize("seed", range(4))
def test_random(seed):
    rng, data = random.Random(seed), np.random.default_rng(seed)
    programs = [Program(rng, data) for _ in range(PROGRAMS)]
    ir = "module {\n" + "\n".join(p.function(f"f{i}", f"k{i}") for i, p in enumerate(programs)) + "\n}"
    objects = [compile_kernels(ir, cpu, outline=False) for cpu in runnable_cpus()]
    for i, p in enumerate(programs):
        outputs = [(e.shape, np.float32) for e in p.expected]
        trips = int(np.prod(p.dims[:p.parallel]))
        first = run(objects[0], p.inputs, outputs, trips, symbol=f"k{i}")
        for got, want in zip(first, p.expected):
            # Terms of order 100 (indices) cancel: absolute, by the largest intermediate.
            scale = max(1.0, max(np.abs(v).max() for _, v in p.values))
            assert np.abs(got - want).max() <= 2e-6 * scale * len(p.values), f"program {i}:\n{p.function('f')}"
        for path in objects:
            cuts = [rng.randrange(trips + 1) for _ in range(3)]
            other = run(path, p.inputs, outputs, trips, symbol=f"k{i}", cuts=cuts)
            assert [a.tobytes() for a in first] == [a.tobytes() for a in other], f"program {i}:\n{p.function('f')}"
