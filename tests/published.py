"""Small files as published, one for each converter of experiments/data/convert.py."""

import bz2
import gzip
import importlib
import io
import zipfile

import numpy as np
import pytest

from orthodrome.datasets._readers import registry
from real_data import REPOSITORY

with pytest.MonkeyPatch.context() as patch:
    patch.syspath_prepend(str(REPOSITORY / "experiments/data"))
    convert, acclaim = (importlib.import_module(name) for name in ("convert", "acclaim"))

ASF = """# two bones and a side branch
:version 1.10
:units
  mass 1.0
  length 0.5
  angle deg
:root
   order TX TY TZ RX RY RZ
   axis XYZ
   position 0 0 0
   orientation 0 0 0
:bonedata
  begin
     id 1
     name upper
     direction 0 1 0
     length 2
     axis 0 0 0  XYZ
    dof rx ry rz
    limits (-160.0 20.0)
           (-70.0 70.0)
           (-60.0 70.0)
  end
  begin
     id 2
     name lower
     direction 1 0 0
     length 3
     axis 0 0 90  XYZ
    dof rx
  end
  begin
     id 3
     name stump
     direction 0 0 1
     length 1
     axis 0 0 0  XYZ
  end
:hierarchy
  begin
    root upper stump
    upper lower
  end
"""
AMC = """#!OML:ASF x
:FULLY-SPECIFIED
:DEGREES
1
root 1 2 3 0 0 0
upper 0 0 0
lower 0
2
root 0 0 0 0 0 90
upper 90 0 0
lower 90
"""
ARFF = (
    b"@relation column_3C_weka\r\n% a comment\r\n@attribute class {Hernia, Normal}\r\n\r\n"
    b"@DATA\r\n63.0278175,22.55258597,39.60911701,40.47523153,98.67291675,-0.254399986,Hernia\r\n"
)
PEN = [b" 47,100, 27, 81, 57, 37, 26,  0,  0, 23, 56, 53,100, 90, 40, 98, 8\r\n"]
PEN += [b" 88, 92,  2, 99, 16, 66, 94, 37, 70,  0,  0, 24, 42, 65,100,100, 8\n"] * 2
LANDMARKS = np.arange(24.0).reshape(3, 2, 4)  # landmarks, axes, samples


def zipped(members):
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return stream.getvalue()


def png(pixels):
    stream = io.BytesIO()
    image = pytest.importorskip("PIL.Image", reason="reading pictures needs pillow")
    image.fromarray(np.asarray(pixels, dtype=np.uint8)).save(stream, format="PNG")
    return stream.getvalue()


def zip_digit(label, value):
    return f"{label:.4f} {' '.join([f'{value:.4f}'] * 256)} \n".encode()


def svmlight(label, value):
    return f"{label + 1} {' '.join(f'{i}:{value}' for i in range(1, 257))}\n".encode()


def usps(write):
    """Return the text of two digits to train with, and of one to test, in a format."""
    return write(6, -0.631) + write(0, 1), write(9, 0.862)


def idx(array):
    head = bytes([0, 0, 8, array.ndim]) + np.array(array.shape, dtype=">u4").tobytes()
    return gzip.compress(head + array.astype(np.uint8).tobytes(), mtime=0)


def digits():
    """Return training images and labels, and those of a test."""
    train, labels = np.arange(3 * 28 * 28).reshape(3, 28, 28) % 251, np.array([5, 0, 4])
    return train, labels, train[:1], labels[:1]


def leaves():
    facts = [("p1", "zeta", "B", 1), ("p2", "alpha", "B", 2), ("p3", "mu", "A", 3)]
    facts += [("p4", "zeta", "B", 4)]
    points = [[i + 0.25 * j for j in range(30)] for i in range(len(facts))]
    landmarks = "\r".join("\t".join(map(str, row)) for row in points)
    header = "plant\tspecies\tclass\tontogeny\ttotal\theteroblasty\tx1\ty1"
    rows = ["\t".join(map(str, [*fact, 9, 8, -1.0, -2.0])) for fact in facts]
    return [landmarks.encode(), "\r".join([header, *rows]).encode()]


def faces():
    pytest.importorskip("PIL", reason="reading pictures needs pillow")
    head, pixels = b"P5\n3 2\n255\n", np.arange(6, dtype=np.uint8).reshape(2, 3)
    return zipped(
        {"README": "text"}
        | {
            f"att_faces/s{person}/{number}.pgm": head + (pixels + 10 * person + number).tobytes()
            for person, number in [(10, 1), (2, 10), (2, 2), (1, 1)]
        }
    )


def r_file(folder, objects):
    rdata = pytest.importorskip("rdata", reason="R data need rdata")
    rdata.write_rda(folder / "objects.rda", objects)
    return (folder / "objects.rda").read_bytes()


TRIANGLE = np.linspace(-0.5, 0.5, 378)


def connectomes():
    rows = [f"{subject},{','.join(map(repr, (TRIANGLE + subject).tolist()))}" for subject in (7, 9)]
    return ["\n".join(["Id,FNC1", *rows]).encode(), b"Id,Class\n7,1\n9,0\n"]


#: For each converter: a data set, the number of the source, and its files (given a folder).
PUBLISHED = {
    "text_table": ("haberman", 0, lambda _: [b"1,2,3,1\n2,1,1,2\n"]),
    "arff_table": ("vertebral_column_3c", 0, lambda _: [zipped({"column_3C_weka.arff": ARFF})]),
    "passiflora": ("passiflora", 0, lambda _: leaves()),
    "passiflora_species": ("passiflora_species", 0, lambda _: leaves()),
    "pen_digits": ("pendigits", 0, lambda _: [PEN[0] * 3, PEN[1]]),
    "zip_digits": ("usps", 0, lambda _: [gzip.compress(each, mtime=0) for each in usps(zip_digit)]),
    "libsvm_digits": ("usps", 1, lambda _: list(map(bz2.compress, usps(svmlight)))),
    "idx_digits": ("mnist", 0, lambda _: list(map(idx, digits()))),
    "face_archive": ("orl_faces", 0, lambda _: [faces()]),
    "same_file": ("camera_512", 1, lambda _: [png(np.arange(24).reshape(6, 4))]),
    "halved_image": ("camera_256", 1, lambda _: [png(np.arange(24).reshape(6, 4))]),
    "acclaim_motion": ("cmu_walk_35", 0, lambda _: [ASF.encode(), AMC.encode()]),
    "r_shapes": ("digit3", 1, lambda folder: [r_file(folder, {"digit3.dat": LANDMARKS})]),
    "connectomes": ("connectomes", 0, lambda _: connectomes()),
}


def source_of(parser):
    """Return the entry and the source of the data set for a converter."""
    name, number, _ = PUBLISHED[parser]
    entry = registry()[name]
    assert entry.sources[number].parser == parser
    return entry, entry.sources[number]
