"""Triangle meshes in the plane."""

import equinox as eqx
import numpy as np
from jaxtyping import Float, Int

SMALLEST_SHAPE = 1e-12
"""Twice the area of a triangle over its longest edge squared; a triangle below this is degenerate."""


class TriangleMesh(eqx.Module):
    """A conforming mesh of straight triangles.

    A mesh is set-up, checked when it is made: its arrays are NumPy's, in float64 whatever JAX's precision, and it is
    made outside ``jit``. What is assembled on it has the dtype asked for there.

    Attributes
    ----------
    points
        Coordinates of the nodes.
    triangles
        Indices of the three corners of each triangle, counted from 0, in either orientation.

    Raises
    ------
    ValueError
        For arrays of other shapes or kinds, coordinates that are not finite, indices outside the points, triangles
        without area or given twice, and edges that more than two triangles share.

    >>> points = [[0, 0], [1, 0], [1, 1], [0, 1], [0.5, 0.5]]
    >>> square = TriangleMesh(points, [[0, 1, 4], [1, 2, 4], [2, 3, 4], [3, 0, 4]])
    >>> square.interior_nodes.tolist(), float(square.areas.sum())
    ([4], 1.0)
    """

    points: Float[np.ndarray, "nodes 2"] = eqx.field(converter=lambda points: np.asarray(points, float))
    triangles: Int[np.ndarray, "triangles 3"] = eqx.field(converter=np.asarray)

    def __check_init__(self):
        points, triangles = self.points, self.triangles
        if points.ndim != 2 or points.shape[1] != 2 or triangles.ndim != 2 or triangles.shape[1] != 3:
            raise ValueError(
                "A triangle mesh has points of shape (nodes, 2) and triangles of shape (triangles, 3); got "
                f"{points.shape} and {triangles.shape}."
            )
        if not np.issubdtype(triangles.dtype, np.integer) or not triangles.size:
            raise ValueError(f"Triangles are integer indices, at least one; got {triangles.size} of {triangles.dtype}.")
        if not np.isfinite(points).all():
            bad = np.flatnonzero(~np.isfinite(points).all(axis=1))
            raise ValueError(f"The coordinates of nodes {_some(bad)} are not finite.")
        outside = np.flatnonzero(((triangles < 0) | (triangles >= len(points))).any(axis=1))
        if outside.size:
            raise ValueError(
                f"Triangles {_some(outside)} name nodes outside 0 to {len(points) - 1}; got indices from "
                f"{triangles.min()} to {triangles.max()}. Subtract 1 where the nodes are counted from 1."
            )
        longest = np.linalg.norm(self.edges, axis=2).max(axis=1)
        flat = np.flatnonzero(2 * self.areas <= SMALLEST_SHAPE * longest**2)
        if flat.size:
            raise ValueError(f"Triangles {_some(flat)} have no area. Remove them, or merge their nodes.")
        _, first = np.unique(np.sort(triangles, axis=1), axis=0, return_index=True)
        repeated = np.setdiff1d(np.arange(len(triangles)), first)
        if repeated.size:
            raise ValueError(f"Triangles {_some(repeated)} have the corners of an earlier one. Remove them.")
        edges, counts = self._undirected_edges()
        if counts.max() > 2:
            a, b = edges[counts.argmax()]
            raise ValueError(
                f"The edge between nodes {a} and {b} belongs to {counts.max()} triangles; in a plane mesh it belongs "
                "to one or two. Remove the triangles that overlap."
            )

    @property
    def edges(self) -> Float[np.ndarray, "triangles 3 2"]:
        """Edge vectors; edge `i` lies opposite corner `i`, and the three sum to zero."""
        corners = self.points[self.triangles]
        return np.roll(corners, 1, axis=1) - np.roll(corners, -1, axis=1)

    @property
    def areas(self) -> Float[np.ndarray, " triangles"]:
        """Areas of the triangles, positive in either orientation."""
        first, second = self.edges[:, 0], self.edges[:, 1]
        return np.abs(first[:, 0] * second[:, 1] - first[:, 1] * second[:, 0]) / 2

    @property
    def centroids(self) -> Float[np.ndarray, "triangles 2"]:
        """Centroids of the triangles."""
        return self.points[self.triangles].mean(axis=1)

    @property
    def boundary_nodes(self) -> Int[np.ndarray, " boundary"]:
        """Ends of the edges that belong to one triangle only, in ascending order."""
        edges, counts = self._undirected_edges()
        return np.unique(edges[counts == 1])

    @property
    def interior_nodes(self) -> Int[np.ndarray, " interior"]:
        """Corners of triangles that are not on the boundary, in ascending order."""
        return np.setdiff1d(self.triangles, self.boundary_nodes)

    def _undirected_edges(self) -> tuple[np.ndarray, np.ndarray]:
        pairs = np.sort(self.triangles[:, [[1, 2], [2, 0], [0, 1]]].reshape(-1, 2), axis=1)
        return np.unique(pairs, axis=0, return_counts=True)


def _some(indices: np.ndarray) -> str:
    shown = ", ".join(map(str, indices[:5]))
    return shown if len(indices) <= 5 else f"{shown} and {len(indices) - 5} more"
