"""GoogleTest programs: one lit test per test case."""
import os

import lit.formats

config.name = "spmd-unit"
config.test_format = lit.formats.GoogleTest(".", "Tests")
config.test_source_root = config.test_exec_root = os.path.join(config.spmd_build_dir, "test", "unit", "bin")
