"""The triangle mesh around an airfoil."""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int

from ._files import read_archive


class Triangulation(NamedTuple):
    """Points and triangles, as NumPy arrays.

    Attributes
    ----------
    points
        Coordinates in float64.
    triangles
        Indices of the three corners of each triangle, counted from 0.
    """

    points: Float[np.ndarray, "nodes 2"]
    triangles: Int[np.ndarray, "triangles 3"]


def airfoil_mesh() -> Triangulation:
    """An unstructured mesh around an airfoil: 322 nodes and 582 triangles, 260 nodes inside.

    The mesh is the example ``airfoil`` of the gallery of PyAMG (MIT licence, notice in the package's data folder).
    Nodes 260 to 321 lie on the boundary, so that the interior nodes are the first 260.

    >>> mesh = airfoil_mesh()
    >>> mesh.points.shape, mesh.triangles.shape
    ((322, 2), (582, 3))
    """
    archive = read_archive("airfoil.npz")
    return Triangulation(archive["points"], archive["triangles"])
