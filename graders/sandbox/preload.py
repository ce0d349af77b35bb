"""Which modules are imported once, before any code of a user runs.

Only what the graders at hand import: every module makes the fork-server larger, and each call
slower by what a larger process takes to copy.
"""

import sys
from collections.abc import Iterable

#: Packages whose import takes time, and which do nothing on import but to define things.
PACKAGES = frozenset(
    {"numpy", "scipy", "pandas", "sympy", "sklearn", "skbio", "rdkit", "nltk", "rapidfuzz"}
    | {"rouge_score", "deepdiff", "jsonschema", "pydantic", "yaml", "sqlparse", "ast_grep_py"}
)

#: Modules of the standard library that do something when they are imported.
_NOT = frozenset({"__main__", "antigravity", "this", "idlelib", "turtle", "turtledemo", "tkinter"})


#: Beginnings of names of modules that are no part of what a package offers: `__main__` runs a
#: program, tests and what belongs to them may do anything.
_NO_LIBRARY = ("_", "test", "conftest")


def worth_loading(imports: Iterable[str], further: Iterable[str] = ()) -> list[str]:
    """Those of the imported modules that may be loaded beforehand, and `further` ones."""
    return sorted({name for name in imports if _is_harmless(name)} | set(further))


def _is_harmless(name: str) -> bool:
    # A user chooses these names, and the modules run outside the sandbox.
    parts = name.split(".")
    known = parts[0] in PACKAGES | sys.stdlib_module_names and parts[0] not in _NOT
    return known and not any(part.startswith(_NO_LIBRARY) for part in parts)
