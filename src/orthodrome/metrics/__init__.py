"""Metrics of embeddings, clusterings and low-rank reconstructions."""

from .clusterings import clustering_error, variation_of_information
from .neighborhoods import coranking_matrix, neighborhood_area, neighborhood_preservation
from .reconstruction import excess_reconstruction_error, reconstruction_error

__all__ = [
    "clustering_error",
    "coranking_matrix",
    "excess_reconstruction_error",
    "neighborhood_area",
    "neighborhood_preservation",
    "reconstruction_error",
    "variation_of_information",
]
