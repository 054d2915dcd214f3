"""One result per file; a file of this folder, or an installed plug-in, is a theory by its name."""

import importlib
import inspect
import pkgutil
import re
import traceback
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import EntryPoint, entry_points
from types import ModuleType

from ..evidence import AbstractTheory

ENTRY_POINT_GROUP = "jaxsolve.theories"
"""Entry points of this group name a theory class, or a module that holds one."""


@dataclass(frozen=True)
class BrokenTheory:
    """A theory that could not be loaded, and the traceback that says why."""

    name: str
    traceback: str


def names() -> tuple[str, ...]:
    """Names of the theories of this folder, in alphabetical order."""
    return tuple(sorted(info.name for info in pkgutil.iter_modules(__path__) if not info.name.startswith("_")))


def load(name: str) -> type[AbstractTheory]:
    """The theory class of a file of this folder, or of an installed plug-in.

    Raises
    ------
    ValueError
        Where no theory has this name, or the plug-in of this name is broken.
    """
    if name in names():
        return theory_in(importlib.import_module(f"{__name__}.{name}"))
    plug_in = plug_ins().get(name)
    if isinstance(plug_in, BrokenTheory):
        raise ValueError(f"The plug-in theory {name!r} is broken:\n{plug_in.traceback}")
    if plug_in is None:
        known = sorted({*names(), *plug_ins()})
        raise ValueError(f"No theory is called {name!r}; there are {', '.join(known)}.")
    return plug_in


def plug_ins() -> Mapping[str, type[AbstractTheory] | BrokenTheory]:
    """Theories that installed packages add through the entry-point group ``jaxsolve.theories``.

    A plug-in that fails to load, or whose name is taken, is returned as broken; the others are not disturbed.
    """
    found: dict[str, type[AbstractTheory] | BrokenTheory] = {}
    for entry_point in sorted(entry_points(group=ENTRY_POINT_GROUP), key=lambda entry: (entry.name, entry.value)):
        name = entry_point.name if entry_point.name not in found else f"{entry_point.name} ({entry_point.value})"
        found[name] = _load_plug_in(entry_point, taken={*names(), *found})
    return found


def _load_plug_in(entry_point: EntryPoint, taken: set[str]) -> type[AbstractTheory] | BrokenTheory:
    try:
        if entry_point.name in taken:
            raise ValueError(f"The name {entry_point.name!r} is taken; rename the entry point {entry_point.value!r}.")
        target = entry_point.load()
        if isinstance(target, ModuleType):
            target = theory_in(target)
        if not (isinstance(target, type) and issubclass(target, AbstractTheory)):
            raise ValueError(f"{entry_point.value!r} names {target!r}; name a theory class or a module with one.")
        for name in (entry_point.name, *target.observables):
            if not re.fullmatch(r"[a-z][a-z0-9_]*", name):
                raise ValueError(f"{name!r} is not lower-case words joined by '_', as theories and observables are.")
    except Exception:
        return BrokenTheory(entry_point.name, traceback.format_exc())
    return target


def theory_in(module: ModuleType) -> type[AbstractTheory]:
    """The one theory class that a module defines.

    Raises
    ------
    ValueError
        Where the module defines none or several.
    """
    found = [
        value
        for value in vars(module).values()
        if isinstance(value, type)
        and issubclass(value, AbstractTheory)
        and not inspect.isabstract(value)
        and value.__module__ == module.__name__
    ]
    if len(found) != 1:
        told = ", ".join(theory.__name__ for theory in found) or "none"
        raise ValueError(
            f"{module.__name__} defines {told}; a theory file defines one final subclass of AbstractTheory."
        )
    return found[0]
