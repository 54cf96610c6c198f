"""Prints what scripts/mistakes finds in a table that does not fit, and what it makes of entries: stale.py SCRIPT."""
import importlib.machinery
import importlib.util
import sys

loader = importlib.machinery.SourceFileLoader("mistakes", sys.argv[1])
sys.dont_write_bytecode = True
script = importlib.util.module_from_spec(importlib.util.spec_from_loader("mistakes", loader))
loader.exec_module(script)
from table import Mistake  # noqa: E402

FILE, RIGHT = "lib/Runtime/Host/CheckIndex.cpp", "value < low || ⟦value >= high⟧"
script.MISTAKES = [Mistake("moved", "lib/Runtime/Host/Gemm.cpp", RIGHT, "", "", ()),
                   Mistake("often", FILE, "int64_t low, int64_t high", "", "", ()),
                   Mistake("gone", "Nothing.cpp", RIGHT, "", "", ()),
                   Mistake("untested", FILE, RIGHT, "", "", ("Transforms/Nothing",)),
                   Mistake("untested", FILE, RIGHT, "", "", ())]
print("\n".join(script.check()))
for file, right, wrong in (("a.cpp", "before ⟦x⟧ after", "x + 1"), ("a.cpp", "before ⟦f();⟧ after", "g();"),
                           ("a.py", "before ⟦x⟧ after", "y")):
    print(script.switched(Mistake("a", file, right, wrong, "", ())))
