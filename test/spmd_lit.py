"""Test format of this project: shell tests (.mlir, .test) and Python tests (test_*.py, through pytest)."""
import json
import os
import resource
import subprocess

import lit.formats
import lit.Test
import lit.util


class PytestServer:
    """The process that runs tests of Python for a process of lit, one after the other."""

    def __init__(self, config):
        script = os.path.join(config.test_source_root, "pytest_server.py")
        self._process = subprocess.Popen([config.spmd_python, script], env=config.environment, text=True,
                                         stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def run(self, arguments: list[str]) -> dict[str, object]:
        """What pytest printed ("output"), its exit code ("code") and the processor time it took ("seconds")."""
        print(json.dumps(arguments), file=self._process.stdin, flush=True)
        answer = self._process.stdout.readline()
        if not answer:
            raise RuntimeError(f"pytest_server.py has ended with {self._process.wait()}")
        return json.loads(answer)


_servers: dict[int, PytestServer] = {}


def _server(config) -> PytestServer:
    """That of this process: lit forks those that run tests."""
    if os.getpid() not in _servers:
        _servers[os.getpid()] = PytestServer(config)
    return _servers[os.getpid()]


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
        before, self._seconds = _seconds_of_children(), 0.0
        result = self._execute(test, lit_config)
        with open(os.path.join(test.config.spmd_build_dir, "test-times.txt"), "a") as times:
            times.write(f"{_seconds_of_children() - before + self._seconds:8.1f}  {test.getFullName()}\n")
        return result

    def _execute(self, test, lit_config):
        if not test.path_in_suite[-1].endswith(".py"):
            return super().execute(test, lit_config)
        if "torch" not in test.config.available_features:
            return lit.Test.UNSUPPORTED, "the configured Python has no PyTorch or no pytest"
        answer = _server(test.config).run(["-q", "-rP", "-x", "-p", "no:cacheprovider", test.getSourcePath()])
        out, code, self._seconds = answer["output"], answer["code"], answer["seconds"]
        # What a test has counted is worth seeing when it passes, too.
        for line in dict.fromkeys(line for line in out.splitlines() if line.startswith("counts: ")):
            lit_config.note(line.removeprefix("counts: "))
        return (lit.Test.PASS if code == 0 else lit.Test.FAIL), out


def _seconds_of_children() -> float:
    """A process of lit runs one test after the other: what its children took meanwhile is the test's."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
