"""Prints what scripts/mistakes finds in a table that does not fit, and what it makes of entries: stale.py SCRIPT FOLDER.

The sources are a few files that are made in FOLDER.
"""
import importlib.machinery
import importlib.util
import sys
from pathlib import Path

loader = importlib.machinery.SourceFileLoader("mistakes", sys.argv[1])
sys.dont_write_bytecode = True
script = importlib.util.module_from_spec(importlib.util.spec_from_loader("mistakes", loader))
loader.exec_module(script)
from table import Mistake  # noqa: E402

script.ROOT = Path(sys.argv[2])
for name, text in (("lib/A/One.cpp", "if (x < 1) f();\nif (x < 2) f();\n"), ("lib/A/Two.cpp", "return x < 3;\n"),
                   ("lib/B/Three.cpp", "\n"), ("test/Things/thing.test", "\n"), ("test/unit/CMakeLists.txt", "\n")):
    (script.ROOT / name).parent.mkdir(parents=True, exist_ok=True)
    (script.ROOT / name).write_text(text)

script.MISTAKES = [Mistake("fits", "lib/A/One.cpp", "if (⟦x < 1⟧)", "x <= 1", "", ("Things/thing",)),
                   Mistake("moved", "lib/A/One.cpp", "return ⟦x < 3⟧;", "true", "", ()),
                   Mistake("often", "lib/A/One.cpp", "⟦f();⟧", "", "", ()),
                   Mistake("gone", "lib/A/Zero.cpp", "g();", "", "", ()),
                   Mistake("untested", "lib/A/Two.cpp", "⟦x < 3⟧", "true", "", ("Things/other",)),
                   Mistake("untested", "lib/A/Two.cpp", "⟦x < 3⟧", "true", "", ())]
print("\n".join(script.check()))
for file, right, wrong in (("a.cpp", "before ⟦x⟧ after", "x + 1"), ("a.cpp", "before ⟦f();⟧ after", "g();"),
                           ("a.py", "before ⟦x⟧ after", "y")):
    print(script.switched(Mistake("a", file, right, wrong, "", ())))
