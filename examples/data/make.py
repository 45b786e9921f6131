"""Write the small simulated files that the README's commands use: leaves.tps and leaves.csv.

python examples/data/make.py
"""

from pathlib import Path

import numpy as np

from orthodrome.app.demo import leaves
from orthodrome.spaces import write_tps

HERE = Path(__file__).resolve().parent

if __name__ == "__main__":
    X, kinds = leaves()
    X = np.round(X, 2)
    names = [f"{kind}_{number:02d}.jpg" for number, kind in enumerate(kinds)]
    write_tps(HERE / "leaves.tps", X, images=names)

    # measures in percent of the size: the leaves are scaled at random
    X = X - X.mean(axis=1, keepdims=True)
    X = 100.0 * X / np.linalg.norm(X, axis=(1, 2), keepdims=True)
    spans = np.sort(np.linalg.norm(X, axis=2), axis=1)
    x, z = X[..., 0], X[..., 1]
    area = 0.5 * np.abs(np.sum(x * np.roll(z, 1, axis=1) - z * np.roll(x, 1, axis=1), axis=1))
    edges = np.linalg.norm(X - np.roll(X, 1, axis=1), axis=2)
    table = np.column_stack(
        [spans[:, -1], spans[:, 0], np.sqrt(area), edges.sum(axis=1), edges.max(axis=1)]
    )
    lines = ["name,farthest,nearest,root_area,outline,longest_edge,kind"]
    for number, (row, kind) in enumerate(zip(table, kinds, strict=True)):
        lines.append(",".join([f"leaf {number:02d}", *(f"{v:.2f}" for v in row), kind]))
    (HERE / "leaves.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
