"""How good an embedding is: which neighbours it keeps."""

from .neighborhoods import coranking_matrix, neighborhood_area, neighborhood_preservation

__all__ = ["coranking_matrix", "neighborhood_area", "neighborhood_preservation"]
