"""iterations.py KEPT [VARIANT]: kernels of a loop of six iterations over `x.1` to `x.6`, of which the first KEPT are there.

Iteration 0 is before the loop. Each has a mask, which stands with those of the others in front, and a carried product;
an op of the optimizer stands there, too. A VARIANT is a step that no iterations can be put into, or not these.
"""
import sys

COUNT = 6
kept, variant = int(sys.argv[1]), sys.argv[2] if len(sys.argv) > 2 else ""
SQUARE, ROWS = "tensor<16x16xf32>", "tensor<16xi64>"
iterations = range(kept + 1)
ops = []


def gather(result, table, rows, segment, symbol):
    ops.append(f'%{result} = kernel.gather_rows %{table}, %{rows} {{spmd.segment = {segment} : i64, symbol = "{symbol}"}} '
               f": ({SQUARE}, {ROWS}) -> {SQUARE}")


def multiply(result, a, b, segment):
    ops.append(f"%{result} = kernel.gemm m 16 n 16 k 16 a(%{a} ld 16 : {SQUARE}) b(%{b} ld 16 : {SQUARE}) "
               f"{{spmd.segment = {segment} : i64}} -> {SQUARE}")


for k in iterations:
    gather(f"mask{k}", "t", f"x{k}", 2 * k, "mask")
gather("rate", "t", "x0", 2 * kept + 2, "rate")
for k in iterations:
    gather(f"out{k}", f"mask{k}", f"x{k}", 2 * k, "out")
    if k == 0:
        gather("sum0", "out0", "x0", 1, "first")
        continue
    multiply(f"product{k}", f"out{k}", "t", 2 * k + 1)
    multiply(f"sum{k}", "t" if variant == "constant" and k == 2 else f"sum{k - 1}", f"product{k}", 2 * k + 1)
result = "out1" if variant == "early" else "new"
multiply("new", f"sum{kept}", "rate", 2 * kept + 2)
known = [k <= kept for k in range(COUNT + 1)]
arguments = [f"%t: {SQUARE}"] + [
    f'%x{k}: {ROWS} {{spmd.arg = #spmd.batch<"x.{k}", dim = 0>{", spmd.index_bound = 16 : i64" if known[k] else ""}}}'
    for k in range(COUNT + 1)]
fed = ", ".join(f'"x.{k}"' for k in range(1, COUNT + 1))
phases = ", ".join(['"forward", "backward"'] * (kept + 1))
left_out = "" if kept == COUNT else f"spmd.iterations = {{count = {COUNT} : i64, fed = [[{fed}]], kept = {kept} : i64, " \
                                    f"segments_end = {2 * kept + 2} : i64}}, "
print(f"module attributes {{{left_out}spmd.phases = [{phases}, \"optimizer\"]}} {{")
print(f"  func.func @step({', '.join(arguments)}) -> {SQUARE} {{")
print("".join(f"    {op}\n" for op in ops) + f"    return %{result} : {SQUARE}\n  }}\n}}")
