"""Conventions of the house: floors, imports, public names, docstrings."""

import ast
import importlib
import inspect
import pkgutil
import subprocess
import sys
from pathlib import Path

import pytest

import jaxsolve

ROOT = Path(jaxsolve.__file__).parent

# From the ground up. Rooms of one floor do not import each other, except where ALLOWED says so.
FLOORS = [
    {"_types", "_arguments", "_results", "_numerics", "_montecarlo", "_files"},
    {"evidence"},
    {"_train", "datasets"},
    {"preconditioners", "pde", "feedback"},
    {"solver", "tangent"},
    {"certificates", "curves", "attention_indexed", "optimizers"},
    {"theories"},
    {"claims"},
    {"plotting", "reproduce"},
    {"cli"},
    {"__main__", "__init__"},
]
GROUND = FLOORS[0]
TOWERS = ({"preconditioners", "pde", "solver"}, {"feedback", "tangent"})
ALLOWED = {("reproduce", "plotting")}
LEVEL = {room: level for level, rooms in enumerate(FLOORS) for room in rooms}

MODULES = sorted(path.relative_to(ROOT) for path in ROOT.rglob("*.py"))


def room_of(path: Path) -> str:
    return path.parts[0].removesuffix(".py")


def imported_rooms(path: Path) -> set[str]:
    """Rooms of jaxsolve that a module imports, relative imports resolved."""
    package = ("jaxsolve", *path.parts[:-1])
    rooms: set[str] = set()
    for node in ast.walk(ast.parse((ROOT / path).read_text())):
        if isinstance(node, ast.Import):
            targets = [tuple(alias.name.split(".")) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else ()
            base += tuple(node.module.split(".")) if node.module else ()
            targets = [(*base, alias.name) for alias in node.names]
        else:
            continue
        rooms |= {target[1] for target in targets if target[0] == "jaxsolve" and len(target) > 1}
    return {room for room in rooms if room in LEVEL}


def test_every_room_has_a_floor():
    assert {room_of(path) for path in MODULES} <= set(LEVEL)


@pytest.mark.parametrize("path", MODULES, ids=str)
def test_a_room_imports_only_from_below(path):
    room = room_of(path)
    for other in imported_rooms(path) - {room}:
        below = LEVEL[other] < LEVEL[room]
        ground = room in GROUND and other in GROUND
        assert below or ground or (room, other) in ALLOWED, f"{path} imports {other}"


@pytest.mark.parametrize("path", MODULES, ids=str)
def test_the_towers_do_not_touch(path):
    for here, there in (TOWERS, TOWERS[::-1]):
        if room_of(path) in here:
            assert not imported_rooms(path) & there


@pytest.mark.parametrize("path", [path for path in MODULES if path.parts[0] == "theories"], ids=str)
def test_a_theory_imports_no_other_theory(path):
    if path.name != "__init__.py":
        assert not {"theories", "claims"} & imported_rooms(path)


def test_importing_the_library_stays_light_and_touches_no_configuration():
    program = (
        "import jax, sys\n"
        "before = dict(jax.config.values)\n"
        "import jaxsolve\n"
        "assert before == dict(jax.config.values), 'configuration touched'\n"
        "heavy = {'matplotlib', 'scipy.stats', 'typer', 'rich', 'skfem', 'pyamg'} & set(sys.modules)\n"
        "assert not heavy, heavy\n"
    )
    subprocess.run([sys.executable, "-W", "error", "-c", program], check=True, timeout=120)


PACKAGES = [
    importlib.import_module(f"jaxsolve.{info.name}")
    for info in pkgutil.iter_modules(jaxsolve.__path__)
    if info.ispkg and not info.name.startswith("_")
]


@pytest.mark.parametrize("package", PACKAGES, ids=lambda package: package.__name__)
def test_public_names_are_there_and_explained(package):
    assert package.__doc__
    for name in getattr(package, "__all__", ()):
        value = getattr(package, name)
        if inspect.isclass(value) or inspect.isfunction(value):
            assert inspect.getdoc(value), f"{package.__name__}.{name} has no docstring"


def test_only_the_application_touches_the_configuration():
    touching = [
        str(path) for path in MODULES if "jax.config.update(" in (ROOT / path).read_text() and path.name != "cli.py"
    ]
    assert touching == ["evidence/_conformance.py"]  # in the text of a message
