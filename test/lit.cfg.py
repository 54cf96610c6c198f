"""lit configuration: IR tests (.mlir), tool tests (.test) and Python tests (test_*.py)."""
import glob
import os
import shutil
import subprocess
import sys

from lit.llvm import llvm_config

sys.path.insert(0, os.path.dirname(__file__))
from spmd_lit import SpmdFormat

config.name = "spmd"
config.suffixes = [".mlir", ".test", ".py"]
config.excludes = ["Inputs", "unit", "lit.cfg.py", "lit.site.cfg.py", "spmd_lit.py", "conftest.py", "CMakeLists.txt"]
config.test_source_root = os.path.dirname(__file__)
config.test_exec_root = os.path.join(config.spmd_build_dir, "test")
config.test_format = SpmdFormat()
# A first run takes the order of tests from .lit_test_times.txt beside this file (seconds of the slow ones, longest first), so that
# no long test is left for one core at the end. Later runs take it from the build folder.

tools_dir = os.path.join(config.spmd_build_dir, "bin")
llvm_config.with_environment("PATH", [tools_dir, config.llvm_tools_dir], append_path=True)
llvm_config.with_environment("PYTHONPATH", os.path.join(config.spmd_source_dir, "python-bindings"), append_path=True)
config.environment["SPMD_BIN"] = tools_dir
# Kernels for the processor that runs them: half of the suite's machine code, and nobody would run the other half.
config.environment["SPMD_CPU"] = "native"
# Threads of OpenMP that wait for each other must not spin: lit runs a test on each core, which needs the core meanwhile.
config.environment["OMP_WAIT_POLICY"] = "passive"
config.environment["SPMD_SOURCE"] = config.spmd_source_dir
llvm_config.with_system_environment("SPMD_TEST_ALL")

config.substitutions.append(("%inputs", os.path.join(config.test_source_root, "Inputs")))
config.substitutions.append(("%examples", os.path.join(config.spmd_source_dir, "examples")))
config.substitutions.append(("%docs", os.path.join(config.spmd_source_dir, "docs")))
config.substitutions.append(("%spmd_build", config.spmd_build_dir))
config.substitutions.append(("%python", config.spmd_python or "python3"))

if os.path.exists("/proc/cpuinfo") and "avx512vl" in open("/proc/cpuinfo").read():
    config.available_features.add("avx512")
# Machine code for GPUs needs NVIDIA's assembler, found where spmd-opt looks for it.
toolkits = [os.environ.get("CUDA_HOME", ""), os.path.dirname(os.path.dirname(shutil.which("ptxas") or "")),
            "/usr/local/cuda", *glob.glob(os.path.join(config.spmd_source_dir, "build", "cuda", "nvidia", "cu*"))]
ptxas = next((path for path in (os.path.join(t, "bin", "ptxas") for t in toolkits if t) if os.access(path, os.X_OK)),
             "")
if ptxas:
    config.available_features.add("ptxas")
    config.substitutions.append(("%ptxas", ptxas))
    config.environment["SPMD_PTXAS"] = ptxas
if config.spmd_python:
    # Looked for, not imported: importing PyTorch takes seconds.
    find = ("import importlib.util as u; "
            "print(*(name for name in ('torch', 'pytest', 'numpy') if u.find_spec(name)))")
    found = subprocess.run([config.spmd_python, "-c", find], capture_output=True, text=True).stdout.split()
    if {"torch", "pytest"} <= set(found):
        config.available_features.add("torch")
    if "numpy" in found:
        config.available_features.add("numpy")
