"""Figures for notebooks and reports. The first figure imports matplotlib.

==============================  ==================================================================
:func:`embedding`               two coordinates of an embedding, coloured by class or by value
:func:`clusters`                points coloured by cluster, with centres, sizes and membership
:func:`sphere`                  unit vectors of R³ on a globe, such as those of kernel PGA
:func:`shapes`                  planar shapes of each class, with their means
:func:`shape_modes`             how shapes change along the modes of a decomposition
:func:`spectrum`                variance explained by each component, and the sum
:func:`neighborhood`            fraction of nearest neighbours preserved
:func:`confusion`               confusion matrix
:func:`curves`                  curves over a common axis
:func:`images`                  rows of small images, such as pre-images and originals
:func:`class_style`             colour and marker of a class, to add to a figure
==============================  ==================================================================

Every function that draws returns the matplotlib Figure. None uses pyplot, so no display is needed
and no figure stays open. To show a figure without pyplot, pass an ``ax`` or call
``fig.savefig(…)``.
``plots.report`` writes figures, tables and text as one HTML page, and ``plots.interactive`` has an
interactive scatter plot for it.
"""

from ._classes import class_style
from ._matplotlib import MissingExtraError
from .confusion import confusion
from .curves import curves, neighborhood, spectrum
from .images import images
from .landmarks import shape_modes, shapes
from .points import clusters, embedding, sphere

__all__ = [
    "MissingExtraError",
    "class_style",
    "clusters",
    "confusion",
    "curves",
    "embedding",
    "images",
    "neighborhood",
    "shape_modes",
    "shapes",
    "spectrum",
    "sphere",
]
