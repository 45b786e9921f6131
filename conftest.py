"""Settings that must stand before scikit-learn, SciPy or matplotlib is imported."""

import os

# Without it scikit-learn's estimator checks skip the array API tests.
os.environ.setdefault("SCIPY_ARRAY_API", "1")
os.environ.setdefault("MPLBACKEND", "Agg")

from hypothesis import settings

# `make test` looks at the same few examples every time; `make test-all` looks for many new ones.
settings.register_profile("fixed", derandomize=True, max_examples=25)
settings.register_profile("explore", derandomize=False, max_examples=100)
settings.load_profile("fixed")
