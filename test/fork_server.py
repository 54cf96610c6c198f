"""Runs scripts of tests in forks of a process that has imported PyTorch: importing it takes seconds of each.

`make_python` writes a program that takes the place of `python`; fork_client.py is its text. A script runs in a process of its own,
with its arguments, variables, folder and streams; signals, exit codes and the end of either side are passed on. Forks differ from
processes of `python` in two ways: modules that `pytest_server.py` has imported are there, and strings have the same hashes in
all of them. Scripts that MPI starts inherit other files, which are not passed on: they need `python` itself.
"""
from __future__ import annotations

import json
import os
import runpy
import selectors
import signal
import socket
import struct
import sys
import time
import types
import warnings
from pathlib import Path
from typing import Any


def make_python(folder: Path) -> Path:
    """The program that runs scripts on the server that listens in `folder`."""
    program = folder / "python"
    text = Path(__file__).with_name("fork_client.py").read_text()
    program.write_text(f"#!{sys.executable} -ES\nSERVER, PYTHON = {str(folder / 'server')!r}, {sys.executable!r}\n{text}")
    program.chmod(0o755)
    return program


def listen(folder: Path) -> socket.socket:
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(folder / "server"))
    listener.listen(64)
    return listener


def serve(listener: socket.socket, end: int, python: Path) -> None:
    """Serves until the pipe `end` is closed. Comes back only in the process of a script, which has run: by SystemExit."""
    keepers: set[int] = set()
    selector = selectors.DefaultSelector()
    selector.register(listener, selectors.EVENT_READ)
    selector.register(end, selectors.EVENT_READ)
    while all(key.fileobj is listener for key, _ in selector.select()):
        connection, _ = listener.accept()
        keeper = os.fork()
        if keeper == 0:
            selector.close()
            listener.close()
            os.close(end)
            _keep(connection, python)
        connection.close()
        keepers.add(keeper)
        keepers -= _ended(keepers)
    limit = time.monotonic() + 5
    while keepers and time.monotonic() < limit:
        time.sleep(0.01)
        keepers -= _ended(keepers)
    os._exit(0)


def _ended(children: set[int]) -> set[int]:
    return {child for child in children if os.waitpid(child, os.WNOHANG)[0]}


def _keep(connection: socket.socket, python: Path) -> None:
    """Starts a script, sends its process and then its exit code; kills the script when its client has ended."""
    header, streams, _, _ = socket.recv_fds(connection, 4, 3)
    size, text = struct.unpack("i", header)[0], b""
    while len(text) < size:
        text += connection.recv(size - len(text))
    child = os.fork()
    if child == 0:
        connection.close()
        for number, stream in enumerate(streams):
            os.dup2(stream, number)
            os.close(stream)
        _run(json.loads(text), python)
    for stream in (*streams, 0, 1, 2):
        os.close(stream)
    selector, ended = selectors.DefaultSelector(), os.pidfd_open(child)
    selector.register(connection, selectors.EVENT_READ)
    selector.register(ended, selectors.EVENT_READ)
    try:
        connection.sendall(struct.pack("i", child))
        if all(key.fileobj is connection for key, _ in selector.select()):
            os.kill(child, signal.SIGKILL)
        connection.sendall(struct.pack("i", os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])))
    except OSError:  # the client ended meanwhile
        os.kill(child, signal.SIGKILL)
    os._exit(0)


def _run(request: dict[str, Any], python: Path) -> None:
    """Runs a script as `python` does, and ends by SystemExit."""
    os.chdir(request["folder"])
    os.environ.clear()
    os.environ.update(request["variables"])
    sys.executable = str(python)
    arguments, filters = request["arguments"], [word for word in os.environ.get("PYTHONWARNINGS", "").split(",") if word]
    while arguments[0] in ("-W", "-u"):
        if arguments[0] == "-W":
            filters.append(arguments[1])
        else:
            sys.stdout.reconfigure(write_through=True)  # type: ignore[union-attr]
        arguments = arguments[2 if arguments[0] == "-W" else 1:]
    for action in filters:
        warnings.simplefilter(action)  # type: ignore[arg-type]
    if threads := os.environ.get("OMP_NUM_THREADS"):
        import torch
        torch.set_num_threads(int(threads))
    option = arguments[0] if arguments[0] in ("-c", "-m") else ""
    sys.argv = [option, *arguments[2:]] if option else arguments
    sys.path[0] = "" if option else str(Path(arguments[0]).resolve().parent)
    sys.path[1:1] = [path for path in os.environ.get("PYTHONPATH", "").split(os.pathsep) if path and path not in sys.path]
    try:
        if option == "-m":
            runpy.run_module(arguments[1], run_name="__main__", alter_sys=True)
        else:
            main = sys.modules["__main__"] = types.ModuleType("__main__")
            if option == "-c":
                name, text = "<string>", arguments[1]
            else:
                name = main.__file__ = arguments[0]
                text = Path(name).read_text()
            exec(compile(text, name, "exec"), main.__dict__)
    except SystemExit:
        raise
    except BaseException as error:
        assert error.__traceback__
        error = error.with_traceback(error.__traceback__.tb_next)  # without the frame of this function
        sys.excepthook(type(error), error, error.__traceback__)
        raise SystemExit(1) from None
    raise SystemExit(0)
