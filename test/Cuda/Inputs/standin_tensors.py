"""Tensors in the memory of the stand-in's GPUs, which speak DLPack as CuPy's do: what a library beside the runtime has."""
import ctypes
import os
import pathlib

import numpy as np

_cuda = ctypes.CDLL(str(pathlib.Path(os.environ["SPMD_CUDA_LIBRARIES"]) / "libcuda.so.1"))
_PIECE = 2 << 20
_u64, _size = ctypes.c_uint64, ctypes.c_size_t
CODES = {"i": 0, "u": 1, "f": 2, "b": 6}


def call(name, *arguments):
    result = getattr(_cuda, name)(*arguments)
    assert result == 0, f"{name}: {result}"


class _Properties(ctypes.Structure):
    _fields_ = [("type", ctypes.c_int), ("handles", ctypes.c_int), ("location", ctypes.c_int * 2), ("meta", ctypes.c_void_p),
                ("flags", ctypes.c_uint8 * 8)]


class Device:
    """A GPU, with a stream that its tensors are written on."""

    def __init__(self, number=0):
        self.number, context = number, ctypes.c_void_p()
        call("cuInit", 0)
        call("cuDevicePrimaryCtxRetain", ctypes.byref(context), number)
        self.context = context
        self.stream = self.make_stream()

    def make_stream(self):
        call("cuCtxSetCurrent", self.context)
        stream = ctypes.c_void_p()
        call("cuStreamCreateWithPriority", ctypes.byref(stream), 1, 0)
        return stream.value

    def allocate(self, size):
        size = max(1, -(-size // _PIECE)) * _PIECE
        address, allocation = _u64(), _u64()
        properties = _Properties(type=1)
        properties.location[:] = [1, self.number]
        call("cuMemAddressReserve", ctypes.byref(address), _size(size), _size(0), _u64(0), _u64(0))
        call("cuMemCreate", ctypes.byref(allocation), _size(size), ctypes.byref(properties), _u64(0))
        call("cuMemMap", address, _size(size), _size(0), allocation, _u64(0))
        return address.value

    def pinned(self, array):
        memory = ctypes.c_void_p()
        call("cuMemHostAlloc", ctypes.byref(memory), _size(max(array.nbytes, 1)), 0)
        ctypes.memmove(memory, array.ctypes.data, array.nbytes)
        return memory

    def write(self, address, array, stream=None):
        """Behind what the stream has; the host's bytes may change at once."""
        array = np.ascontiguousarray(array)
        if array.nbytes:
            call("cuMemcpyHtoDAsync_v2", _u64(address), self.pinned(array), _size(array.nbytes), ctypes.c_void_p(stream or self.stream))

    def read(self, address, shape, dtype, stream=None):
        array, stream = np.empty(shape, dtype), ctypes.c_void_p(stream or self.stream)
        memory = self.pinned(array)
        call("cuMemcpyDtoHAsync_v2", memory, _u64(address), _size(array.nbytes), stream)
        call("cuStreamSynchronize", stream)
        ctypes.memmove(array.ctypes.data, memory, array.nbytes)
        return array

    def wait(self, waiting, awaited):
        """Work that `waiting` gets from now on comes after what `awaited` has."""
        call("cuCtxSetCurrent", self.context)
        event = ctypes.c_void_p()
        call("cuEventCreate", ctypes.byref(event), 2)
        call("cuEventRecord", event, ctypes.c_void_p(awaited))
        call("cuStreamWaitEvent", ctypes.c_void_p(waiting), event, 0)


class _Tensor(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("kind", ctypes.c_int32), ("number", ctypes.c_int32), ("ndim", ctypes.c_int32),
                ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16), ("shape", ctypes.c_void_p),
                ("strides", ctypes.c_void_p), ("offset", ctypes.c_uint64), ("context", ctypes.c_void_p),
                ("deleter", ctypes.c_void_p)]


_new = ctypes.pythonapi.PyCapsule_New
_new.restype, _new.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]


class Tensor:
    """`array` on a device; `strides`: those that it says it has; `says`: another dtype's code, bits, or device."""

    def __init__(self, device, array, strides=None, **says):
        array = np.asarray(array)
        self.device, self.shape, self.dtype, self.strides, self.says = device, array.shape, array.dtype, strides, says
        self.address, self.asked = device.allocate(array.nbytes), []
        device.write(self.address, array)

    def write(self, array):
        self.device.write(self.address, np.asarray(array, self.dtype))

    def read(self, stream=None):
        return self.device.read(self.address, self.shape, self.dtype, stream)

    def __dlpack_device__(self):
        return 2, self.says.get("number", self.device.number)

    def __dlpack__(self, stream=None):
        self.asked.append(stream)
        if stream != self.device.stream:
            self.device.wait(stream, self.device.stream)
        sizes = (ctypes.c_int64 * len(self.shape))(*self.shape)
        steps = (ctypes.c_int64 * len(self.shape))(*self.strides) if self.strides else None
        tensor = _Tensor(self.address, 2, self.says.get("number", self.device.number), len(self.shape),
                         self.says.get("code", CODES[self.dtype.kind]), self.says.get("bits", self.dtype.itemsize * 8), 1,
                         ctypes.addressof(sizes), ctypes.addressof(steps) if steps else None, 0)
        capsule = _new(ctypes.addressof(tensor), b"dltensor", None)
        _kept.append((tensor, sizes, steps))
        return capsule


_kept = []
