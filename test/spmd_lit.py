"""Test format of this project: shell tests (.mlir, .test) and Python tests (test_*.py, through pytest)."""
import os
import resource

import lit.formats
import lit.Test
import lit.util


class SpmdFormat(lit.formats.ShTest):
    """Shell tests as lit runs them; each `test_*.py` is one test run by pytest, unsupported where Python lacks
    PyTorch."""

    def __init__(self):
        super().__init__(execute_external=False)

    def getTestsInDirectory(self, suite, path, lit_config, local_config):
        for test in super().getTestsInDirectory(suite, path, lit_config, local_config):
            name = test.path_in_suite[-1]
            if not name.endswith(".py") or name.startswith("test_"):
                yield test

    def execute(self, test, lit_config):
        """Runs a test, and notes the processor time that its programs took in test-times.txt of the build folder."""
        before = _seconds_of_children()
        result = self._execute(test, lit_config)
        with open(os.path.join(test.config.spmd_build_dir, "test-times.txt"), "a") as times:
            times.write(f"{_seconds_of_children() - before:8.1f}  {test.getFullName()}\n")
        return result

    def _execute(self, test, lit_config):
        if not test.path_in_suite[-1].endswith(".py"):
            return super().execute(test, lit_config)
        if "torch" not in test.config.available_features:
            return lit.Test.UNSUPPORTED, "the configured Python has no PyTorch or no pytest"
        command = [test.config.spmd_python, "-m", "pytest", "-q", "-rP", "-x", "-p", "no:cacheprovider",
                   test.getSourcePath()]
        out, err, code = lit.util.executeCommand(command, env=test.config.environment)
        # What a test has counted is worth seeing when it passes, too.
        for line in dict.fromkeys(line for line in out.splitlines() if line.startswith("counts: ")):
            lit_config.note(line.removeprefix("counts: "))
        return (lit.Test.PASS if code == 0 else lit.Test.FAIL), out + err


def _seconds_of_children() -> float:
    """A process of lit runs one test after the other: what its children took meanwhile is the test's."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
