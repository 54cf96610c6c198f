"""python test/Coverage/try.py FAMILY [OP...]: how far these ops come, with the ATen ops they consist of."""
import importlib
import sys

from harness import run_family

ops = importlib.import_module(sys.argv[1]).OPS
wanted = sys.argv[2:] or [op.name for op in ops]
for name, result in run_family([op for op in ops if op.name in wanted]).items():
    print(f"{name:40} " + " ".join(f"{cell:10}" for cell in result.cells.values()) + " " + " ".join(result.ops))
    if result.failure:
        print("    " + result.failure)
