"""Settings that must stand before scikit-learn, SciPy or matplotlib is imported."""

import os

# Without it scikit-learn's estimator checks skip the array API tests.
os.environ.setdefault("SCIPY_ARRAY_API", "1")
os.environ.setdefault("MPLBACKEND", "Agg")

from hypothesis import settings

# `make test` looks at the same examples every time; `make test-all` looks for new ones.
settings.register_profile("fixed", derandomize=True)
settings.register_profile("explore", derandomize=False)
settings.load_profile("fixed")
