"""The weighted Karcher mean by geomstats, in its own environment; see harness.Peer."""

import json
import logging
import sys
from importlib.metadata import version

# this file has the name of the package, and its folder comes first on the path
sys.path.pop(0)

import numpy as np
from geomstats.geometry.hypersphere import Hypersphere
from geomstats.learning.frechet_mean import FrechetMean

logging.disable(logging.WARNING)
data = np.load(sys.argv[1])
epsilon = float(sys.argv[2])
mean = FrechetMean(Hypersphere(data["points"].shape[1] - 1))
if epsilon:
    mean.set(epsilon=epsilon, max_iter=1000)
print(json.dumps({"version": version("geomstats")}), flush=True)
for _ in sys.stdin:
    mean.fit(data["points"], weights=data["weights"])
    print(json.dumps({"point": mean.estimate_.tolist()}), flush=True)
