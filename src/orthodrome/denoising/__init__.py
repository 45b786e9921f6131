"""Denoising by kernel PCA: images by their patches, motion by its frames."""

from .image import PatchDenoiser
from .sequence import SequenceDenoiser

__all__ = ["PatchDenoiser", "SequenceDenoiser"]
