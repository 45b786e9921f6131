"""Acclaim motion capture, as CMU publishes it: a skeleton (ASF), its angles (AMC), positions."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.transform import Rotation

__all__ = ["Bone", "Skeleton", "joint_positions", "parse_amc", "parse_asf"]

Angles = dict[str, NDArray[np.float64]]

_METRES_PER_INCH = 0.0254


@dataclass(frozen=True)
class Bone:
    """One bone of a skeleton.

    Parameters
    ----------
    name : str
        Its name, which is also that of the joint at its far end.
    parent : int
        Index of the parent bone; -1 for the root.
    offset : ndarray of shape (3,)
        From its near to its far end in the rest pose, in units of the file.
    axis : ndarray of shape (3,)
        Angles in degrees, about x, y, z in this order, of the frame in which it turns.
    freedoms : tuple of str
        What the motion file gives for it, of rx, ry, rz (and tx, ty, tz for the root).
    """

    name: str
    parent: int
    offset: NDArray[np.float64]
    axis: NDArray[np.float64]
    freedoms: tuple[str, ...]


@dataclass(frozen=True)
class Skeleton:
    """Bones, parents before children and the root first, and the file's unit in metres."""

    bones: tuple[Bone, ...]
    metres: float


def parse_asf(text: str) -> Skeleton:
    """Read a skeleton.

    Parameters
    ----------
    text : str
        An ASF file with angles in degrees.

    Returns
    -------
    skeleton : Skeleton
        The root, then the bones in the order of the file.
    """
    sections = {
        head.split()[0]: body
        for head, _, body in (part.partition("\n") for part in text.split("\n:")[1:])
    }
    for name in ("units", "root", "bonedata", "hierarchy"):
        if name not in sections:
            raise ValueError(f"The ASF file has no section ':{name}'.")
    units = dict(line.split()[:2] for line in sections["units"].splitlines() if line.split())
    if units.get("angle", "deg") != "deg":
        raise ValueError(f"The ASF file measures angles in {units['angle']!r}, expected 'deg'.")
    parents = _parents(sections["hierarchy"])
    blocks = re.findall(r"\bbegin\b(.*?)\bend\b", sections["bonedata"], flags=re.DOTALL)
    facts = [_bone_facts(block) for block in blocks]
    order = ["root", *(bone["name"][0] for bone in facts)]
    bones = [_root(sections["root"])]
    for bone in facts:
        name = bone["name"][0]
        if name not in parents or parents[name] not in order[: len(bones)]:
            raise ValueError(f"The ASF file does not hang bone {name!r} on an earlier bone.")
        if bone["axis"][3] != "XYZ":
            raise ValueError(f"Bone {name!r} has axis order {bone['axis'][3]!r}, expected 'XYZ'.")
        offset = np.array(bone["direction"], dtype=np.float64) * float(bone["length"][0])
        axis = np.array(bone["axis"][:3], dtype=np.float64)
        freedoms = tuple(bone.get("dof", ()))
        bones.append(Bone(name, order.index(parents[name]), offset, axis, freedoms))
    # CMU's unit: `length` is the inverse of a scale to inches.
    return Skeleton(tuple(bones), _METRES_PER_INCH / float(units.get("length", "1")))


def _parents(hierarchy: str) -> dict[str, str]:
    lines = [line.split() for line in hierarchy.splitlines() if line.split()]
    links = [words for words in lines if words not in (["begin"], ["end"])]
    return {child: words[0] for words in links for child in words[1:]}


def _bone_facts(block: str) -> dict[str, list[str]]:
    facts = {}
    for line in block.splitlines():
        words = line.split()
        if words and words[0] in {"name", "direction", "length", "axis", "dof"}:
            facts[words[0]] = words[1:]
    missing = {"name", "direction", "length", "axis"} - set(facts)
    if missing:
        raise ValueError(f"A bone of the ASF file lacks {sorted(missing)}: {block.split()[:6]}.")
    return facts


def _root(section: str) -> Bone:
    facts = {words[0]: words[1:] for words in map(str.split, section.splitlines()) if words}
    if facts.get("axis", ["XYZ"]) != ["XYZ"]:
        raise ValueError(f"The root has axis order {facts['axis'][0]!r}, expected 'XYZ'.")
    placed = [float(number) for name in ("position", "orientation") for number in facts[name]]
    if any(placed):
        raise ValueError("The root's position and orientation must be 0 in the ASF file.")
    freedoms = tuple(word.lower() for word in facts["order"])
    return Bone("root", -1, np.zeros(3), np.zeros(3), freedoms)


def parse_amc(text: str) -> list[Angles]:
    """Read the frames of a motion.

    Parameters
    ----------
    text : str
        An AMC file in degrees.

    Returns
    -------
    frames : list of dict of str to ndarray
        For each frame the numbers of each bone.
    """
    frames: list[Angles] = []
    for number, line in enumerate(text.splitlines(), start=1):
        words = line.split()
        if not words or words[0][0] in "#:":
            if words[:1] == [":RADIANS"]:
                raise ValueError("The AMC file is in radians, expected degrees.")
        elif len(words) == 1 and words[0].isdigit():
            frames.append({})
        elif frames:
            try:
                frames[-1][words[0]] = np.array(words[1:], dtype=np.float64)
            except ValueError:
                raise ValueError(f"AMC line {number}: {line!r} holds no numbers.") from None
        else:
            raise ValueError(f"AMC line {number}: {line!r} stands before the first frame.")
    if not frames:
        raise ValueError("The AMC file has no frame.")
    return frames


def joint_positions(skeleton: Skeleton, frames: Iterable[Angles]) -> NDArray[np.float64]:
    r"""Positions of all joints by forward kinematics.

    With C the rotation of a bone's own frame and R that of its angles,

    .. math::

        G = G_{parent} \, C R C^{-1}, \qquad p = p_{parent} + G \, o,

    where rotations are about x first, then y, then z, and o is the bone's offset.

    Parameters
    ----------
    skeleton : Skeleton
        The bones.
    frames : iterable of dict of str to ndarray
        The numbers of each bone in each frame.

    Returns
    -------
    positions : ndarray of shape (n_frames, n_bones, 3)
        In metres; the root, then the far end of each bone.
    """
    frames = list(frames)
    positions = np.zeros((len(frames), len(skeleton.bones), 3))
    turned: list[Rotation] = []
    for index, bone in enumerate(skeleton.bones):
        values = _freedoms(bone, frames)
        frame = Rotation.from_euler("xyz", bone.axis, degrees=True)
        own = frame * Rotation.from_euler("xyz", values[:, 3:], degrees=True) * frame.inv()
        if bone.parent < 0:
            turned.append(own)
            positions[:, index] = values[:, :3]
            continue
        turned.append(turned[bone.parent] * own)
        positions[:, index] = positions[:, bone.parent] + turned[index].apply(bone.offset)
    return positions * skeleton.metres


def _freedoms(bone: Bone, frames: list[Angles]) -> NDArray[np.float64]:
    """Return tx, ty, tz, rx, ry, rz of a bone in each frame, 0 where it has no such freedom."""
    values = np.zeros((len(frames), 6))
    columns = [("tx", "ty", "tz", "rx", "ry", "rz").index(name) for name in bone.freedoms]
    for row, angles in enumerate(frames):
        given = angles.get(bone.name, np.zeros(0))
        if len(given) != len(columns):
            raise ValueError(
                f"Frame {row + 1} of the AMC file has {len(given)} numbers for bone "
                f"{bone.name!r}, the skeleton expects {len(columns)}."
            )
        values[row, columns] = given
    return values
