"""Runs the examples in the descriptions of Passes.td: each ```mlir block is one, and every pass has one.

    // spmd-opt --spmd-dedup-collectives
    IR before
    // becomes
    IR after                       (or, instead of both lines:  // fails with: part of the error)

The IR after is parsed and printed again before it is compared, so that its spelling is free. Examples run in an empty
folder of their own: what a pass writes is gone afterwards.
"""
import os
import re
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

PASS = re.compile(r'^def \w+\s*:\s*Pass<"([\w-]+)".*?^\}', re.S | re.M)
EXAMPLE = re.compile(r"```mlir\n(.*?)```", re.S)
COMMAND = re.compile(r"\s*// (spmd-opt --.*)\n")
OUTCOME = re.compile(r"^\s*// (?:(becomes)|fails with: (.*))\n", re.M)


def run(command, text):
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(command, input=text, capture_output=True, text=True, cwd=folder)
    return done.returncode, done.stdout, done.stderr


def check(name, example):
    """None, or what is wrong with an example of pass `name`."""
    command = COMMAND.match(example)
    if not command:
        return "an example does not begin with its command, // spmd-opt --" + name
    words = shlex.split(command.group(1))
    if not any(word.lstrip("-").split("=")[0] == name for word in words):
        return f"the command does not run --{name}"
    outcomes = list(OUTCOME.finditer(example))
    if len(outcomes) != 1:
        return "expected one line '// becomes' or '// fails with: ...'"
    becomes, message = outcomes[0].groups()
    before, after = example[command.end():outcomes[0].start()], example[outcomes[0].end():]
    code, out, err = run([*words, "-"], before)
    if not becomes:
        return None if code and message in err else f"should fail with '{message}'\n{err}"
    if "no ptxas is in" in err and "SPMD_PTXAS" not in os.environ:
        return None  # tests that need it are left out on this machine
    if code:
        return f"the command failed\n{err}"
    code, expected, err = run(["spmd-opt", "-"], after)
    if code:
        return f"the IR after does not parse\n{err}"
    return None if out == expected else f"the pass gives\n{out}\nbut the description says\n{expected}"


def main():
    count = wrong = 0
    for path in sorted(Path(sys.argv[1]).rglob("Passes.td")):
        text = path.read_text()
        passes = list(PASS.finditer(text))
        if len(passes) != len(re.findall(r"\bPass<", text)):
            sys.exit(f"{path}: not every pass can be told from the rest")
        for match in passes:
            examples = EXAMPLE.findall(match.group(0))
            problems = [check(match.group(1), example) for example in examples] or ["no example"]
            for problem in filter(None, problems):
                print(f"{path.name} of {path.parent.name}: {match.group(1)}: {problem}", file=sys.stderr)
                wrong += 1
            count += len(examples)
    print(f"{count} examples, {wrong} wrong")
    sys.exit(1 if wrong or not count else 0)


main()
