"""Runs the examples in the descriptions of Passes.td: each ```mlir block that begins with a command is one example.

    // spmd-opt --spmd-dedup-collectives
    IR before
    // becomes
    IR after                       (or, instead of both lines:  // fails with: part of the error)

The IR after is parsed and printed again before it is compared, so that its spelling is free. Every pass has an example.
"""
import re
import shlex
import subprocess
import sys
from pathlib import Path

PASS = re.compile(r'^def \w+\s*:\s*Pass<"([\w-]+)".*?^\}', re.S | re.M)
EXAMPLE = re.compile(r"```mlir\n(.*?)```", re.S)
COMMAND = re.compile(r"^\s*// (spmd-opt --.*)$", re.M)
FAILS = re.compile(r"^\s*// fails with: (.*)$", re.M)


def run(command, text):
    done = subprocess.run(command, input=text, capture_output=True, text=True)
    return done.returncode, done.stdout, done.stderr


def check(name, example):
    """None, or what is wrong."""
    command = COMMAND.search(example)
    words = shlex.split(command.group(1))
    if not any(word.lstrip("-").split("=")[0] == name for word in words):
        return f"the command does not run --{name}"
    body = example[command.end():]
    fails = FAILS.search(body)
    before, _, after = body.partition("// becomes\n") if not fails else (body[:fails.start()], "", "")
    code, out, err = run([words[0], *words[1:], "-"], before)
    if fails:
        return None if code and fails.group(1) in err else f"should fail with '{fails.group(1)}'\n{err}"
    if code:
        return f"the command failed\n{err}"
    if not after:
        return "no '// becomes' line"
    code, expected, err = run(["spmd-opt", "-"], after)
    if code:
        return f"the IR after does not parse\n{err}"
    return None if out == expected else f"the pass gives\n{out}\nbut the description says\n{expected}"


def main():
    count = wrong = 0
    for path in sorted(Path(sys.argv[1]).rglob("Passes.td")):
        for match in PASS.finditer(path.read_text()):
            name = match.group(1)
            examples = [e for e in EXAMPLE.findall(match.group(0)) if COMMAND.search(e)]
            problems = [check(name, e) for e in examples] or ["no example"]
            for problem in filter(None, problems):
                print(f"{path.name} of {path.parent.name}: {name}: {problem}", file=sys.stderr)
                wrong += 1
            count += len(examples)
    print(f"{count} examples, {wrong} wrong")
    sys.exit(1 if wrong or not count else 0)


main()
