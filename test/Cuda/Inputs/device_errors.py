"""What of tensors on a GPU is refused, before a step and without a change: prints each sentence, and takes a good one.

    device_errors.py ARTIFACT       one rank; an embedding's row numbers come first
"""
import sys

import numpy as np

import spmd
from standin_tensors import Device, Tensor

trainer = spmd.load(sys.argv[1])
device = Device()
good = [np.ones(info.shape, np.int64) for info in trainer.inputs]


def tried(what, first, **how):
    try:
        trainer.run([Tensor(how.pop("on", device), first, **how), *good[1:]])
    except (spmd.RunError, ValueError, TypeError) as error:
        print(f"{what}: {str(error).splitlines()[0]}")
    else:
        print(f"{what}: nothing")


tried("device", good[0], on=Device(1))
tried("kind", good[0].astype(np.int32))
tried("shape", good[0][:1])
tried("strides", good[0], strides=good[0].strides)
tried("dtype", good[0], code=5, bits=128)
wrong = good[0].copy()
wrong[1, 2] = 1 << 30
tried("row", wrong)
out = Tensor(device, np.zeros((3,), np.float32))
first, = spmd.load(sys.argv[1]).run(good)
assert trainer.run([Tensor(device, array) for array in good]) == [first]
for given in (out, Tensor(Device(1), np.zeros(())), np.zeros(())):
    try:
        trainer.copy_output(0, given)
    except ValueError as error:
        print(f"out: {error}")
