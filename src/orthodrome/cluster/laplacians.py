"""Matrices whose eigenvectors embed points: the normalised graph or the centred Gram matrix.

``wrap`` returns the operator whose leading eigenvectors embed the points; ``embedding`` returns the
embedding of the training points, and its extension to new points.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._core.types import Floats
from ..coordinates import Coordinates
from ..coordinates.blocks import Block
from ..decomposition.geometry import centered
from ..decomposition.view import View
from ..eigen import Eigenpairs
from ..eigen.components import affine_map, make_components, weighted_problem
from ..eigen.pairs import orient
from ..gram import Centered, CrossOperator, Degree, GramOperator
from ..gram.wrapped import product_and_degrees


class SpectralEmbedding(NamedTuple):
    """The embedding of the training points, and its extension to new points."""

    points: NDArray[Any]  # (m, k)
    eigenvalues: NDArray[Any]  # (k,)
    extension: AffineExtension | GraphExtension
    n_isolated: int = 0


@dataclass(frozen=True)
class Graph:
    """Embedding by eigenvectors of the normalised graph.

    Rows are normalised to length 1, or divided by the square roots of the degrees.
    """

    unit_rows: bool

    def wrap(self, view: View) -> tuple[Degree, GramOperator]:
        """Return the graph, shifted so that no eigenvalue is negative, as Hebbian solvers require.

        If similarities are nonnegative, eigenvalues are at least -1. If K is positive semidefinite,
        they are at least -max_i K_ii/Δ_i. The smaller the shift, the larger the relative gaps
        between eigenvalues, and the faster the solver.
        """
        graph = Degree(
            view.gram,
            view.weights,
            row_numbers=view.canonical.index,
            uncertainty=view.sum_uncertainty(),
        )
        graph.shift = min(1.0, graph.largest_own_share()) if view.definite else 1.0
        return graph, graph

    def embedding(self, view: View, graph: Degree, pairs: Eigenpairs) -> SpectralEmbedding:
        """Embed the points with the eigenvectors of the graph."""
        weights, dtype = graph.weights, pairs.vectors.dtype
        values = pairs.values.astype(np.float64) - graph.shift
        vectors = _with_small_rows(graph, pairs.vectors, values)
        if view.definite:  # rounding errors could separate points that are equal in K
            vectors[:, ~graph.held_by_matrix(vectors, values)] = 0
        distinct = graph.distinguishes_points()
        if not distinct:
            vectors[:, 1:] = 0  # only rounding errors, which could separate equal points
        # a point of weight w stands for w copies, each with the entry v / √w
        points = vectors / np.sqrt(weights)[:, None]
        if self.unit_rows:
            points = _unit_rows(points)
        else:
            roots = np.sqrt(graph.degrees)[:, None]
            points = np.divide(points, roots, out=np.zeros_like(points), where=roots > 0)
        if not distinct:
            points = np.tile(points.mean(axis=0), (len(points), 1))
        signs = orient(points, weights)
        vectors = vectors * signs.astype(dtype)
        return SpectralEmbedding(
            points=(points * signs).astype(dtype),
            eigenvalues=values.astype(dtype),
            extension=GraphExtension(vectors, values, weights, graph.inverse_roots, self.unit_rows),
            n_isolated=int(np.count_nonzero(graph.inverse_roots == 0)),
        )


@dataclass(frozen=True)
class Principal:
    """Embedding by eigenvectors of the centred Gram matrix, with rows of length 1."""

    def wrap(self, view: View) -> tuple[Centered, GramOperator]:
        """Return the centred Gram matrix without and with weights."""
        operator = centered(view.gram, view.weights)
        return operator, weighted_problem(operator, view.weights)

    def embedding(self, view: View, operator: Centered, pairs: Eigenpairs) -> SpectralEmbedding:
        """Embed the points with the eigenvectors."""
        components = make_components(pairs, operator, view.weights, drop_null=False)
        # coordinates are eigenvectors times roots of eigenvalues; null components stay 0
        roots = np.sqrt(components.eigenvalues)
        inverse = np.divide(1, roots, out=np.zeros_like(roots), where=roots > 0)
        return SpectralEmbedding(
            points=_unit_rows(components.embedding * inverse),
            eigenvalues=components.eigenvalues,
            extension=AffineExtension(*affine_map(operator, components.coefficients * inverse)),
        )


#: Values of the parameter ``laplacian``.
LAPLACIANS: dict[str, Graph | Principal] = {
    "njw": Graph(unit_rows=True),
    "kernel-pca": Principal(),
    "ncut": Graph(unit_rows=False),
}


@dataclass(frozen=True)
class AffineExtension:
    """Embedding of new points: the rows of k(x, X) @ matrix + constant, scaled to length 1."""

    matrix: NDArray[Any]
    constant: NDArray[Any]

    def __call__(self, cross: CrossOperator | Block, diagonal: NDArray[Any]) -> NDArray[Any]:
        """Embed new points; k(x, x) is not needed."""
        return _unit_rows(np.ascontiguousarray(cross @ self.matrix) + self.constant)

    def over_features(self, features: Coordinates) -> AffineExtension:
        """Return the extension as a function of features f(x) instead of k(x, X).

        `features` are the features F of the training points, so that k(x, X) = f(x) Fᵀ.
        """
        return replace(self, matrix=features.combine(self.matrix).T)


@dataclass(frozen=True)
class GraphExtension:
    r"""The Nyström extension of eigenvectors of a graph, exact at the training points.

    With :math:`f_q(x) = \sum_j k(x, x_j) \sqrt{w_j / \Delta_j}\, v_{jq}` and
    :math:`\Delta(x) = \sum_j w_j k(x, x_j)` the extension is

    .. math:: u_q(x) = \frac{f_q(x)}{\sqrt{\Delta(x)}} \cdot
        \frac{\Delta_-(x) + k(x, x)}{\lambda_q \Delta_-(x) + k(x, x)}, \qquad
        \Delta_-(x) = \max(\Delta(x) - k(x, x), 0).

    The graph excludes the similarity of a point to itself, but the plain extension
    :math:`f_q / (\lambda_q \sqrt{\Delta})` includes it. This makes it inexact at training points,
    with a large error if λ_q is as small as k(x, x)/Δ. The second factor corrects this. For large
    degrees it tends to 1/λ_q, which gives the plain extension. For points that are dissimilar to
    all others it tends to 1, which gives the mean of the neighbours.
    """

    vectors: NDArray[Any]
    eigenvalues: NDArray[Any]
    weights: Floats
    inverse_roots: Floats
    unit_rows: bool

    def __call__(self, cross: CrossOperator | Block, diagonal: NDArray[Any]) -> NDArray[Any]:
        """Embed new points."""
        product, degrees = product_and_degrees(
            cross, self.vectors, self.weights, self.inverse_roots
        )
        others = np.maximum(degrees - diagonal, 0.0)[:, None]
        denominators = others * self.eigenvalues + diagonal[:, None]
        factors = np.divide(
            others + diagonal[:, None],
            denominators,
            out=np.zeros_like(denominators),
            where=denominators != 0,
        )
        rows = product * factors
        if self.unit_rows:
            return _unit_rows(rows).astype(product.dtype, copy=False)
        roots = np.sqrt(degrees)[:, None]
        np.divide(rows, roots, out=rows, where=roots > 0)
        return rows.astype(product.dtype, copy=False)

    def over_features(self, features: Coordinates) -> GraphExtension:
        """Return the extension as a function of features; `diagonal` is their squared norms."""
        scaled = self.vectors.astype(np.float64) * self.inverse_roots[:, None]
        sums = features.combine(np.column_stack([scaled, self.weights]))
        ones = np.ones(sums.shape[1])
        return replace(self, vectors=sums[:-1].T, weights=sums[-1], inverse_roots=ones)


def _with_small_rows(graph: Degree, vectors: NDArray[Any], values: Floats) -> NDArray[Any]:
    """Return eigenvectors with accurate small rows, and zero rows for isolated points.

    A solver is accurate relative to the largest entries. The row of a loosely connected point is
    far smaller, but its direction matters. It is computed from the rows of the neighbours with the
    eigenvector equation.
    """
    lengths = np.linalg.norm(vectors, axis=1)
    eps = float(np.finfo(vectors.dtype).eps)
    small = np.flatnonzero((lengths < np.sqrt(eps) * lengths.max()) & (graph.inverse_roots > 0))
    found = np.where(graph.inverse_roots[:, None] > 0, vectors, 0)
    large = values > 0.1 * values[0]  # avoid division by small eigenvalues
    for start in range(0, len(small), 256):
        chosen = small[start : start + 256]
        block = graph.rows(chosen)
        block[np.arange(len(chosen)), chosen] -= graph.shift
        found[np.ix_(chosen, np.flatnonzero(large))] = (block @ vectors[:, large]) / values[large]
    return found


def _unit_rows(rows: NDArray[Any]) -> NDArray[Any]:
    """Divide each row by its norm; rows of zeros are unchanged."""
    largest = np.abs(rows).max(axis=1, keepdims=True)  # prevents over- and underflow of squares
    scaled = np.divide(rows, largest, out=np.zeros_like(rows), where=largest > 0)
    lengths = np.linalg.norm(scaled, axis=1, keepdims=True)
    return np.divide(scaled, lengths, out=scaled, where=lengths > 0)
