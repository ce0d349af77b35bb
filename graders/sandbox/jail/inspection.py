"""Looking at a grader's source without running it, inside the locked process.

Parsing is no safe thing to do elsewhere: a few bytes of source can cost gigabytes, or overflow the
parser's stack.
"""

import ast
import importlib.util
import json
import warnings
from typing import Any

from .harness import FILENAME

#: Most imports that are reported.
MAX_IMPORTS = 200


def reply(source: str) -> bytes:
    """The body of a reply; see `wire`."""
    return b"J" + json.dumps(inspect(source)).encode()


def inspect(source: str) -> dict[str, Any]:
    """The source's imports and those that are not installed, or what is wrong with it and where."""
    # Printed they would fill the output, which nobody reads here.
    warnings.simplefilter("ignore")
    try:
        tree = ast.parse(source, FILENAME)
        compile(tree, FILENAME, "exec", dont_inherit=True)
    except SyntaxError as error:
        return {"problem": error.msg, "line": error.lineno, "column": error.offset}
    except (RecursionError, MemoryError):
        problem = "the source is too large or too deeply nested to compile"
        return {"problem": problem, "line": None, "column": None}
    except ValueError as error:
        return {"problem": str(error), "line": None, "column": None}
    wrong = _grade_problem(tree)
    if wrong:
        return {"problem": wrong[0], "line": wrong[1], "column": None}
    names = sorted(_imports(tree))[:MAX_IMPORTS]
    return {"imports": names, "missing": [name for name in names if _is_missing(name)]}


def _imports(tree: ast.Module) -> set[str]:
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
            # What is imported may be a module itself, as in `from rdkit import Chem`.
            found |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return found


def _is_missing(name: str) -> bool:
    """Whether a module's top-level package is not there; nothing of it is run to find out."""
    try:
        return importlib.util.find_spec(name.partition(".")[0]) is None
    except ValueError:  # A module that was loaded without a spec, as __main__ is.
        return False


def _grade_problem(tree: ast.Module) -> tuple[str, int | None] | None:
    """What is wrong with `grade`, as far as it can be seen: it may also be an assigned value."""
    bound = [node for node in tree.body if _binds_grade(node)]
    if not bound:
        # Something less plain than a definition may bind it: a branch, a loop, `import *`.
        plain = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Assign, ast.Import)
        rest = [node for node in tree.body if not isinstance(node, plain)]
        if any(_binds_grade(inner) for node in rest for inner in ast.walk(node)):
            return None
        return "the source defines no function grade(sample, item)", None
    last = bound[-1]
    if isinstance(last, ast.AsyncFunctionDef):
        return "the function grade must be a plain one, not async", last.lineno
    if isinstance(last, ast.FunctionDef) and not last.decorator_list and not _takes_two(last.args):
        return "the function grade must take two positional arguments, sample and item", last.lineno
    return None


def _binds_grade(node: ast.AST) -> bool:
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        return node.name == "grade"
    if isinstance(node, (ast.Import, ast.ImportFrom)):
        return any((alias.asname or alias.name) in ("grade", "*") for alias in node.names)
    if isinstance(node, ast.Name):
        return node.id == "grade" and isinstance(node.ctx, ast.Store)
    if isinstance(node, (ast.Assign, ast.AnnAssign)):
        return any(_binds_grade(inner) for inner in ast.walk(node) if inner is not node)
    return False


def _takes_two(arguments: ast.arguments) -> bool:
    positional = len(arguments.posonlyargs) + len(arguments.args)
    needed = positional - len(arguments.defaults)
    keyword_only = any(default is None for default in arguments.kw_defaults)
    return needed <= 2 and (positional >= 2 or arguments.vararg is not None) and not keyword_only
