"""Denoising of images and motion data with kernel PCA."""

from .image import PatchDenoiser
from .sequence import SequenceDenoiser

__all__ = ["PatchDenoiser", "SequenceDenoiser"]
