"""Settings that must stand before scikit-learn, SciPy or matplotlib is imported."""

import os

# Without it scikit-learn's estimator checks skip the array API tests.
os.environ.setdefault("SCIPY_ARRAY_API", "1")
os.environ.setdefault("MPLBACKEND", "Agg")
