"""Prints how far each model of the zoo comes, and writes docs/models.md. See scripts/coverage-models."""
from __future__ import annotations

import argparse
import concurrent.futures
import functools
import multiprocessing
import multiprocessing.connection
import os
import signal
import sys

import torch

import elsewhere
import pipeline
import zoo
from document import DOCUMENT, FAIL, PASS, SETTINGS, Document

#: Seconds for one case.
TIME_LIMIT = 600


def work(name: str, setting: tuple[str, str] | None, result: multiprocessing.connection.Connection) -> None:
    """In a process of its own, and a process group, which the time limit ends."""
    os.setsid()
    torch.set_num_threads(1)
    try:
        case = zoo.find(name)
        result.send((True, elsewhere.check(case, setting[0], getattr(torch, setting[1])) if setting else pipeline.check(case)))
    except pipeline.StageError as error:
        result.send((False, f"{error.stage}: {error}"))
    except Exception as error:  # the model's own
        result.send((False, f"PyTorch itself: {type(error).__name__}: {error}".splitlines()[0]))


def check_one(name: str, setting: tuple[str, str] | None = None) -> tuple[bool, str]:
    """Whether a case passes, and what its collectives are, or how far its gradients are off, or which op stopped it."""
    # Forked: PyTorch and transformers are imported once.
    context = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=work, args=(name, setting, sender))
    process.start()
    sender.close()
    multiprocessing.connection.wait([receiver, process.sentinel], TIME_LIMIT)
    if receiver.poll():
        try:
            return receiver.recv()
        except EOFError:
            pass
    if process.is_alive():
        os.killpg(process.pid, signal.SIGKILL)
        return False, f"took longer than {TIME_LIMIT} s"
    process.join()
    return False, f"the script itself ended with {process.exitcode}"


def main() -> int:
    parser = argparse.ArgumentParser(prog="coverage-models", description=__doc__)
    parser.add_argument("names", nargs="*", help="classes (default: all; with --target or --dtype all mixtures of experts)")
    parser.add_argument("--write", action="store_true", help=f"write what these classes come to in {DOCUMENT.name}")
    parser.add_argument("--target", help="trains for this target instead, beside eager (default with --dtype: host)")
    parser.add_argument("--dtype", choices=("float32", "bfloat16"), help="in this type (default with --target: float32)")
    arguments = parser.parse_args()
    setting = (arguments.target or "host", arguments.dtype or "float32") if arguments.target or arguments.dtype else None
    cases = zoo.MIXTURES if setting else zoo.CASES
    if setting and arguments.write and setting not in SETTINGS:
        parser.error(f"{DOCUMENT.name} has {', '.join(' in '.join(s) for s in SETTINGS)}")
    known = [zoo.label(case) for case in (cases if arguments.write else zoo.CASES)]
    for name in arguments.names:
        if name not in known:
            parser.error(f"unknown class {name!r}; known are {', '.join(known)}")
    names = arguments.names or [zoo.label(case) for case in cases]
    document, passed = Document.read(), 0
    if not setting and not arguments.names:
        document.rows = {}
    with concurrent.futures.ThreadPoolExecutor(max(2, os.cpu_count() or 2)) as pool:
        for name, (good, text) in zip(names, pool.map(functools.partial(check_one, setting=setting), names)):
            print(f"{'pass' if good else 'fail'}  {name}: {text}", flush=True)
            passed += good
            text = text.replace("|", "\\|")
            if setting in document.cells:
                document.cells[setting][name] = text if good else FAIL + text
            elif not setting:
                document.rows[name] = (PASS if good else FAIL) + text
            if arguments.write:
                document.write()
    print(f"{passed} of {len(names)} pass")
    return 0 if passed == len(names) else 1


if __name__ == "__main__":
    sys.exit(main())
