"""Which room may import which: the arrows of CONTRIBUTING.md, checked in the code of every file."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).resolve().parents[1]
MAY_IMPORT: dict[str, set[str]] = {
    "extractors": set(),
    "recipes": set(),
    "data_synthesis": {"extractors", "recipes"},
    "training": {"extractors", "recipes"},
    "serve": {"extractors", "recipes"},
    "eval": {"extractors", "recipes", "serve"},
}
ROOMS = {*MAY_IMPORT, "mnemosmith", "tests"}
GROUND_FLOOR_LIBRARIES = {"pydantic", "numpy", "scipy"}
HEAVY = {"torch", "transformers", "trl", "peft", "openai", "datasets", "sentence_transformers", "sklearn", "matplotlib"}


def imported(tree: ast.AST) -> Iterator[tuple[str, int]]:
    """Top-level package and line of every import, those inside functions and by name at run time included."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield alias.name.split(".")[0], node.lineno
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            yield str(node.module).split(".")[0], node.lineno
        elif isinstance(node, ast.Call) and node.args and isinstance(node.args[0], ast.Constant):
            called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            if called in ("import_module", "__import__") and isinstance(node.args[0].value, str):
                yield node.args[0].value.split(".")[0], node.lineno


def files(room: str) -> list[Path]:
    found = sorted((CHECKOUT / room).rglob("*.py"))
    assert found, f"{room}/ holds no Python file: has it moved?"
    return found


@pytest.mark.parametrize("room", MAY_IMPORT)
def test_a_room_imports_only_the_rooms_below_it(room: str) -> None:
    wrong = [
        f"{path.relative_to(CHECKOUT)}:{line} imports {package}"
        for path in files(room)
        for package, line in imported(ast.parse(path.read_text(encoding="utf-8")))
        if package in ROOMS - {room} - MAY_IMPORT[room]
    ]
    assert not wrong, "\n".join(wrong)


def test_the_ground_floor_imports_the_standard_library_pydantic_numpy_and_scipy_alone() -> None:
    allowed = {*sys.stdlib_module_names, *GROUND_FLOOR_LIBRARIES, "extractors"}
    wrong = [
        f"{path.relative_to(CHECKOUT)}:{line} imports {package}"
        for path in files("extractors")
        for package, line in imported(ast.parse(path.read_text(encoding="utf-8")))
        if package not in allowed
    ]
    assert not wrong, "\n".join(wrong)


def test_every_folder_with_code_is_a_room_of_the_table() -> None:
    tracked = subprocess.run(
        ["git", "ls-files", "*.py"], cwd=CHECKOUT, capture_output=True, text=True, check=False
    ).stdout.split()
    assert {Path(path).parts[0].removesuffix(".py") for path in tracked} <= ROOMS


def loaded_by(statement: str) -> set[str]:
    """Heavy packages that a statement loads in a fresh interpreter."""
    script = f"import sys\n{statement}\nprint(*(set({sorted(HEAVY)!r}) & sys.modules.keys()))"
    done = subprocess.run([sys.executable, "-c", script], cwd=CHECKOUT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return set(done.stdout.split())


@pytest.mark.parametrize(
    "statement",
    ["import extractors, extractors.rows, extractors.triplets.score", "import recipes.loader", "import mnemosmith"],
)
def test_importing_it_loads_no_heavy_library(statement: str) -> None:
    assert loaded_by(statement) == set()


def test_the_probe_sees_a_library_that_is_loaded() -> None:
    assert loaded_by("import numpy; sys.modules['torch'] = numpy") == {"torch"}
