"""Data that come with the library, and small helpers for labels."""

from ._airfoil import Triangulation, airfoil_mesh
from ._digits import Digits, digits, one_hot

__all__ = ["Digits", "Triangulation", "airfoil_mesh", "digits", "one_hot"]
