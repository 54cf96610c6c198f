"""Steps with a batch on the device; of the third the calls of the driver are between two of cuDeviceGetCount.

    device_waits.py ARTIFACT
"""
import ctypes
import sys

import numpy as np

import spmd
from standin_tensors import Device, Tensor, call

trainer, device = spmd.load(sys.argv[1]), Device()
batch = [np.ones(info.shape, {"i64": np.int64, "f32": np.float32}[info.dtype]) for info in trainer.inputs]
tensors, out = [Tensor(device, array) for array in batch], Tensor(device, np.zeros((), np.float32))
trainer.run(batch)
trainer.run(batch)
for tensor, array in zip((*tensors, out), (*batch, np.zeros(()))):
    tensor.write(array)
call("cuDeviceGetCount", ctypes.byref(ctypes.c_int()))
trainer.issue(tensors, stream=device.stream)
call("cuDeviceGetCount", ctypes.byref(ctypes.c_int()))
for tensor, array in zip((*tensors, out), (*batch, np.zeros(()))):  # these are the caller's again
    tensor.write(array)
call("cuDeviceGetCount", ctypes.byref(ctypes.c_int()))
trainer.copy_output(0, out, stream=device.stream)
call("cuDeviceGetCount", ctypes.byref(ctypes.c_int()))
out.read()
trainer.results()
