"""Trains an artifact of one rank for each process, with batches in the memory of the stand-in's GPU, and prints what it gives.

    device_batches.py ARTIFACT HOW      host: on the host; ours: DLPack without a stream; stream: the caller's; mixed: the
                                        first input on the host; reused: written again as soon as a step is issued
"""
import os
import sys

import numpy as np

import spmd
from standin_tensors import Device, Tensor

artifact, how = sys.argv[1:]
rank, world = int(os.environ.get("RANK", 0)), int(os.environ.get("WORLD_SIZE", 1))
trainer = spmd.load(artifact)
device = Device(int(os.environ.get("LOCAL_RANK", 0)))
TYPES = {"i64": np.int64, "f32": np.float32}
STEPS = 12


def batch(step):
    random, made = np.random.default_rng(step), []
    for info in trainer.inputs:
        kind = TYPES[info.dtype]
        values = random.integers(0, 5, info.shape).astype(kind) if info.dtype == "i64" else random.normal(size=info.shape).astype(kind)
        rows = values.shape[0] // world
        made.append(values[rank * rows:(rank + 1) * rows])
    return made


out = Tensor(device, np.zeros(trainer.outputs[0].shape, np.float32))
tensors = [Tensor(device, values) for values in batch(0)]
losses = []
for step in range(STEPS):
    values = batch(step)
    if how == "host":
        trainer.issue(values)
    elif how == "ours":
        trainer.issue([Tensor(device, array) for array in values])
    else:
        for tensor, array in zip(tensors, values):
            tensor.write(array)
        trainer.issue([values[0], *tensors[1:]] if how == "mixed" else tensors, stream=device.stream)
        if how == "reused":
            for tensor, array in zip(tensors, values):
                tensor.write(np.zeros_like(array))
    if how in ("host", "mixed"):
        losses.append(trainer.results()[0])
    else:  # on the device, and not waited for
        trainer.copy_output(0, out, stream=None if how == "ours" else device.stream)
        losses.append(out.read())
for loss in losses:
    if rank == 0:
        print("loss", float(loss).hex(), flush=True)
for info in trainer.tensors:
    there = Tensor(device, np.zeros(info.shape, np.float32))
    is_whole = trainer.is_tensor_whole(info.state, info.name)  # where ranks meet, a step is waited for
    assert trainer.copies_tensor(info.state, info.name, there) == (is_whole and not trainer.collectives)
    assert not trainer.copies_tensor(info.state, info.name, np.zeros(info.shape, np.float32))
    if info.state == "param" and trainer.is_tensor_whole(info.state, info.name):
        trainer.copy_tensor(info.state, info.name, there, stream=device.stream)
        assert np.array_equal(there.read(), trainer.read(info.state, info.name)), info.name
        print("whole", info.name)
trainer.close()
