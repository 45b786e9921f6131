"""
Save and load a model
=====================

Save a model of wines to a file that contains no code, and load it.

``orthodrome.save`` writes a file without code, and ``orthodrome.load`` executes nothing from it.
This is safer than pickle.
"""

# %%
# Kernel PGA of wines, and its file: a zip archive of numbers and a description. It contains the
# training rows, because a kernel method compares new points with them.

import tempfile
import zipfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_wine
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from orthodrome import KernelPGA, load, plots, save

X, y = load_wine(return_X_y=True)
train, test, y_train, y_test = train_test_split(X, y, random_state=0, stratify=y)
model = make_pipeline(StandardScaler(), KernelPGA(2, random_state=0)).fit(train)
folder = tempfile.TemporaryDirectory()
file = Path(folder.name) / "wines.orthodrome"
save(model, file, notes={"data": "wines of scikit-learn"})
members = zipfile.ZipFile(file).namelist()
print(f"{file.stat().st_size / 1024:.0f} KiB, {len(members)} members, the first {members[0]}")

# %%
# The loaded model gives the same numbers.

loaded, notes = load(file, with_notes=True)
difference = np.abs(loaded.transform(test) - model.transform(test)).max()
print(f"{notes['data']}: {type(loaded[-1]).__name__}, new points within {difference:.0e}")

plots.embedding(
    loaded.transform(test),
    load_wine().target_names[y_test],
    ax=plt.figure(figsize=(6.2, 4.4), layout="constrained").subplots(),
    ratios=loaded[-1].explained_variance_ratio_,
    title="Wines that the saved model has not seen",
)

# %%
# ``save`` rejects objects that ``load`` could not read. ``load`` rejects a file that was changed.

try:
    save(KernelPGA(2, kernel=lambda A, B: np.exp(-((A[:, None] - B) ** 2).sum(2))), file)
except ValueError as error:
    print(error)

damaged = bytearray(file.read_bytes())
damaged[len(damaged) // 2] ^= 1
file.write_bytes(damaged)
try:
    load(file)
except ValueError as error:
    print(str(error).replace(str(file), file.name))
folder.cleanup()

plt.show()
