"""Helpers for tests of figures."""

import numpy as np


def legend_texts(figure):
    return [text.get_text() for text in figure.axes[0].get_legend().get_texts()]


def linear_rgb(rgb):
    rgb = np.asarray(rgb)
    return np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)


def contrast(first, second):
    """Return the contrast ratio of two colours (WCAG 2)."""
    low, high = sorted(linear_rgb(rgb) @ [0.2126, 0.7152, 0.0722] for rgb in (first, second))
    return (high + 0.05) / (low + 0.05)
