"""
Denoise a motion by its frames
==============================

Remove noise from a simulated walk with kernel PCA of its frames.

Each frame of a motion is a point: the positions of all joints. A walk is a curve that repeats with
every step. Kernel PCA follows the curve, and pre-images move noisy frames back to it. Linear PCA
finds a flat space that contains the curve, and keeps all noise inside that space.
"""

# %%
# A simulated walk on the spot: hips and shoulders stay, and limbs of two bones swing.

import matplotlib.pyplot as plt
import numpy as np

from orthodrome.denoising import SequenceDenoiser

phase = np.linspace(0, 12 * np.pi, 360)


def limb(top, lengths, swing, bend, side):
    """Positions of the ends of two bones below a joint, shape (2, frames, 3)."""
    first = swing * np.sin(phase + side)
    second = first - bend * np.maximum(0, np.sin(phase + side + 1.2)) ** 2
    ends, at = [], np.asarray(top)
    for length, angle in zip(lengths, (first, second), strict=True):
        bone = np.stack([np.sin(angle), -np.cos(angle), 0 * angle], axis=1)
        at = at + length * bone
        ends.append(at)
    return ends


joints, bones = [], []
for left in (-1, 1):
    for height, lengths, swing, bend in [
        (0.9, (0.45, 0.45), 0.5, 0.9),
        (1.4, (0.3, 0.3), 0.4, -0.5),
    ]:
        top = (0.0, height, 0.2 * left)
        side = np.pi * ((left > 0) ^ (height > 1))
        first = len(joints)
        joints += [np.broadcast_to(top, (len(phase), 3)), *limb(top, lengths, swing, bend, side)]
        bones += [(first, first + 1), (first + 1, first + 2)]
walk = np.stack(joints, axis=1)  # frames x joints x 3
bones += [(0, 3), (6, 9)]  # hips to shoulders
noisy = walk + 0.05 * np.random.default_rng(0).standard_normal(walk.shape)

# %%
# The noise level is estimated from differences between successive frames. The other parameters are
# chosen to minimise an estimate of the error. Linear PCA is the same method with a linear kernel.

cleaned = {}
for name, kernel in [("linear PCA", "linear"), ("kernel PCA", "gaussian")]:
    denoiser = SequenceDenoiser(kernel=kernel, random_state=0)
    cleaned[name] = denoiser.denoise(noisy)
    removed = 1 - np.mean((cleaned[name] - walk) ** 2) / np.mean((noisy - walk) ** 2)
    print(
        f"{name}: {removed:.0%} of the squared error removed, {denoiser.n_components_} components"
    )
print(f"estimated noise {denoiser.noise_:.3f}, sigma {denoiser.sigma_:.2f}")

# %%
# One frame from the side, and the path of a foot. The original is grey.

figure, axes = plt.subplots(
    2, 3, figsize=(8, 6.4), layout="constrained", sharey="row", sharex="row"
)
frame, foot = 40, 2
for column, (name, frames) in zip(axes.T, {"noisy": noisy, **cleaned}.items(), strict=True):
    for positions, color in ((walk, "0.7"), (frames, "#D55E00")):
        for bone in bones:
            column[0].plot(*positions[frame, bone, :2].T, "o-", color=color, markersize=3)
    column[0].set(title=name, aspect="equal")
    column[1].plot(*frames[:, foot, :2].T, ".", color="#D55E00", markersize=3)
    column[1].plot(*walk[:, foot, :2].T, color="0.7")
    column[1].set(xlabel="forward")
axes[0, 0].set_ylabel("up")
axes[1, 0].set_ylabel("up: the left foot")

plt.show()
