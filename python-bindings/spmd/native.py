"""What include/spmd/Runtime/spmd.h declares, for ctypes; test/Runtime/header.test compares them."""
from __future__ import annotations

import ctypes
import importlib.util
import os
from ctypes import POINTER, Structure, c_char, c_char_p, c_double, c_int32, c_int64, c_size_t, c_void_p
from pathlib import Path

OK, BAD_INPUT, FAILED, OTHER_STATE = 0, 2, 3, 4


class Status(Structure):
    _fields_ = [("code", c_int32), ("rank", c_int32), ("command", c_int32), ("message", c_char * 1024),
                ("location", c_char * 512)]


BATCHES = ("rows", "global")  # of a process, of the job; by number


class Launch(Structure):
    _fields_ = [("size", c_size_t), ("launcher", c_char_p), ("world_size", c_int64), ("rank", c_int64), ("address", c_char_p)]


class Options(Structure):
    _fields_ = [("size", c_size_t), ("ranks", c_int64), ("threads", c_int64), ("timeout_seconds", c_double),
                ("weights", c_char_p), ("cpu", c_char_p), ("fault", c_char_p), ("shares", c_void_p),
                ("profile", c_int32), ("batch", c_int32), ("launch", POINTER(Launch)), ("written_next", c_int32),
                ("flight_record", c_char_p)]


class Tensor(Structure):
    _fields_ = [("data", c_void_p), ("dtype", c_int32), ("rank", c_int32), ("shape", POINTER(c_int64))]


class Place(Structure):  # DLPack's DLDevice
    _fields_ = [("kind", c_int32), ("number", c_int32)]


class TensorInfo(Structure):
    _fields_ = [("size", c_size_t), ("name", c_char_p), ("state", c_char_p), ("dtype", c_int32), ("rank", c_int32),
                ("shape", POINTER(c_int64)), ("bytes", c_size_t), ("num_aliases", c_size_t)]


class CollectiveInfo(Structure):
    _fields_ = [("size", c_size_t), ("op", c_char_p), ("communicator", c_char_p), ("unit", c_char_p), ("location", c_char_p),
                ("command", c_int32), ("bytes", c_int64)]


class CommandInfo(Structure):
    _fields_ = [("size", c_size_t), ("op", c_char_p), ("kernel", c_char_p), ("location", c_char_p), ("stream", c_int32), ("bytes", c_int64),
                ("flops", c_double), ("begin_nanoseconds", c_int64), ("end_nanoseconds", c_int64)]


class File(Structure):
    _fields_ = [("name", c_char_p), ("data", c_char_p), ("bytes", c_size_t)]


class ShardInfo(Structure):
    _fields_ = [("size", c_size_t), ("name", c_char_p), ("state", c_char_p), ("dtype", c_int32), ("first", c_int64), ("count", c_int64)]


class SaveOptions(Structure):
    _fields_ = [("size", c_size_t), ("kind", c_char_p), ("step", c_int64), ("keep", c_int64), ("notes", c_char_p),
                ("files", POINTER(File)), ("num_files", c_size_t), ("beside", c_int32)]


_TRAINER, _PROCESSES, _STATUS, _INFO = c_void_p, c_void_p, POINTER(Status), POINTER(TensorInfo)
_CHECKPOINT = c_void_p
_FUNCTIONS = {
    "spmd_options_init_sized": (None, [POINTER(Options), c_size_t]),
    "spmd_join": (c_int32, [POINTER(Launch), c_double, POINTER(_PROCESSES), _STATUS]),
    "spmd_leave": (None, [_PROCESSES]),
    "spmd_process": (c_int64, [_PROCESSES]),
    "spmd_num_processes": (c_int64, [_PROCESSES]),
    "spmd_gather": (c_int32, [_PROCESSES, c_void_p, c_size_t, c_void_p, c_double, _STATUS]),
    "spmd_share": (c_int32, [_PROCESSES, c_int64, c_void_p, c_size_t, _STATUS]),
    "spmd_native_cpu": (c_char_p, []),
    "spmd_load": (c_int32, [c_char_p, POINTER(Options), POINTER(_TRAINER), _STATUS]),
    "spmd_close": (None, [_TRAINER]),
    "spmd_ranks": (c_int64, [_TRAINER]),
    "spmd_threads": (c_int64, [_TRAINER]),
    "spmd_arena_bytes": (c_int64, [_TRAINER]),
    "spmd_cpu": (c_char_p, [_TRAINER]),
    "spmd_result_tree": (c_char_p, [_TRAINER]),
    "spmd_num_warnings": (c_size_t, [_TRAINER]),
    "spmd_warning": (c_char_p, [_TRAINER, c_size_t]),
    "spmd_describe_flight": (c_char_p, [_TRAINER]),
    "spmd_num_inputs": (c_size_t, [_TRAINER]),
    "spmd_input": (c_int32, [_TRAINER, c_size_t, _INFO, _STATUS]),
    "spmd_num_outputs": (c_size_t, [_TRAINER]),
    "spmd_output": (c_int32, [_TRAINER, c_size_t, _INFO, _STATUS]),
    "spmd_num_tensors": (c_size_t, [_TRAINER]),
    "spmd_tensor_at": (c_int32, [_TRAINER, c_size_t, _INFO, _STATUS]),
    "spmd_tensor_alias": (c_char_p, [_TRAINER, c_size_t, c_size_t]),
    "spmd_tensor_is_saved": (c_int32, [_TRAINER, c_size_t]),
    "spmd_num_collectives": (c_size_t, [_TRAINER]),
    "spmd_collective": (c_int32, [_TRAINER, c_size_t, POINTER(CollectiveInfo), _STATUS]),
    "spmd_num_commands": (c_size_t, [_TRAINER]),
    "spmd_command": (c_int32, [_TRAINER, c_int64, c_size_t, POINTER(CommandInfo), _STATUS]),
    "spmd_set_hyper": (c_int32, [_TRAINER, c_char_p, c_int64, c_double, _STATUS]),
    "spmd_step": (c_int32, [_TRAINER, POINTER(Tensor), c_size_t, _STATUS]),
    "spmd_rank_place": (c_int32, [_TRAINER, POINTER(Place), POINTER(c_int64), _STATUS]),
    "spmd_step_on": (c_int32, [_TRAINER, POINTER(Tensor), POINTER(Place), c_size_t, c_int64, _STATUS]),
    "spmd_is_output_whole": (c_int32, [_TRAINER, c_size_t]),
    "spmd_copy_output": (c_int32, [_TRAINER, c_size_t, c_void_p, c_size_t, c_int64, _STATUS]),
    "spmd_is_tensor_whole": (c_int32, [_TRAINER, c_char_p, c_char_p]),
    "spmd_copy_tensor": (c_int32, [_TRAINER, c_char_p, c_char_p, c_void_p, c_size_t, c_int64, _STATUS]),
    "spmd_read_output": (c_int32, [_TRAINER, c_size_t, c_void_p, c_size_t, _STATUS]),
    "spmd_read_output_ago": (c_int32, [_TRAINER, c_size_t, c_int64, c_void_p, c_size_t, _STATUS]),
    "spmd_steps_kept": (c_int64, [_TRAINER, c_size_t]),
    "spmd_read_tensor": (c_int32, [_TRAINER, c_char_p, c_char_p, c_void_p, c_size_t, _STATUS]),
    "spmd_write_tensor": (c_int32, [_TRAINER, c_char_p, c_char_p, c_void_p, c_size_t, _STATUS]),
    "spmd_save": (c_int32, [_TRAINER, c_char_p, c_int32, _STATUS]),
    "spmd_reads_alone": (c_int32, [_TRAINER]),
    "spmd_num_shards": (c_int32, [_TRAINER, c_int64, POINTER(c_size_t), _STATUS]),
    "spmd_shard": (c_int32, [_TRAINER, c_int64, c_size_t, POINTER(ShardInfo), _STATUS]),
    "spmd_read_shard": (c_int32, [_TRAINER, c_int64, c_size_t, c_void_p, c_size_t, _STATUS]),
    "spmd_save_options_init_sized": (None, [POINTER(SaveOptions), c_size_t]),
    "spmd_save_checkpoint": (c_int32, [_TRAINER, c_char_p, POINTER(SaveOptions), _STATUS]),
    "spmd_load_checkpoint": (c_int32, [_TRAINER, c_char_p, c_int32, POINTER(_CHECKPOINT), _STATUS]),
    "spmd_finish_checkpoint": (c_int32, [_TRAINER, c_int32, POINTER(c_int32), _STATUS]),
    "spmd_import_checkpoint": (c_int32, [c_char_p, c_char_p, c_int64, c_char_p, _STATUS]),
    "spmd_open_checkpoint": (c_int32, [c_char_p, POINTER(_CHECKPOINT), _STATUS]),
    "spmd_close_checkpoint": (None, [_CHECKPOINT]),
    "spmd_checkpoint_folder": (c_char_p, [_CHECKPOINT]),
    "spmd_checkpoint_text": (c_char_p, [_CHECKPOINT]),
    "spmd_num_checkpoint_notices": (c_size_t, [_CHECKPOINT]),
    "spmd_checkpoint_notice": (c_char_p, [_CHECKPOINT, c_size_t]),
    "spmd_num_checkpoint_tensors": (c_size_t, [_CHECKPOINT]),
    "spmd_checkpoint_tensor": (c_int32, [_CHECKPOINT, c_size_t, _INFO, _STATUS]),
    "spmd_read_checkpoint_tensor": (c_int32, [_CHECKPOINT, c_char_p, c_void_p, c_size_t, _STATUS]),
    "spmd_read_checkpoint_file": (c_int32, [_CHECKPOINT, c_char_p, POINTER(c_void_p), POINTER(c_size_t), _STATUS]),
}


def _name_nvidia_packages() -> None:
    """Tells the runtime where NVIDIA's Python packages, PyTorch's for one, have their libraries: the last place it looks
    for cuBLASLt and NCCL."""
    found = importlib.util.find_spec("nvidia")
    folders = [str(folder) for root in (found.submodule_search_locations or () if found else ())
               for folder in sorted(Path(root).glob("*/lib"))]
    if folders and "SPMD_CUDA_PACKAGES" not in os.environ:
        os.environ["SPMD_CUDA_PACKAGES"] = ":".join(folders)


def load(path: Path) -> ctypes.CDLL:
    """The library, with every function's types declared."""
    _name_nvidia_packages()
    library = ctypes.CDLL(str(path))
    for name, (result, arguments) in _FUNCTIONS.items():
        function = getattr(library, name)
        function.restype, function.argtypes = result, arguments
    return library
