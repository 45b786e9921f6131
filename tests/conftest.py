"""Fixtures of several folders."""

from browser import browser

__all__ = ["browser"]
