"""The formats that experiments/data/convert.py reads, on small files."""

import bz2
import gzip
import importlib
import io
import tarfile
import zipfile

import numpy as np
import pytest

from orthodrome.datasets._readers import Source, arrays_sha256, read_fields, registry
from real_data import REPOSITORY

with pytest.MonkeyPatch.context() as patch:
    patch.syspath_prepend(str(REPOSITORY / "experiments/data"))
    convert, acclaim = (importlib.import_module(name) for name in ("convert", "acclaim"))
joint_positions, parse_amc = acclaim.joint_positions, acclaim.parse_amc
parse_asf, converted, unpacked = acclaim.parse_asf, convert.converted, convert.unpacked


def test_every_source_has_a_converter():
    parsers = {source.parser for entry in registry().values() for source in entry.sources}
    assert parsers - {""} == convert.ALL_CONVERTERS.keys()


def test_arff_in_an_archive():
    entry = registry()["vertebral_column_3c"]
    arff = (
        b"@relation column_3C_weka\r\n% a comment\r\n@attribute class {Hernia, Normal}\r\n\r\n"
        b"@DATA\r\n63.0278175,22.55258597,39.60911701,40.47523153,98.67291675,-0.254399986,Hernia\r\n"
    )
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        archive.writestr("column_3C_weka.arff", arff)
    fields = read_fields(converted([stream.getvalue()], entry.sources[0], entry), entry)
    assert fields["data"].tolist() == [
        [63.0278175, 22.55258597, 39.60911701, 40.47523153, 98.67291675, -0.254399986]
    ]
    assert fields["target_names"].tolist() == ["Hernia"]
    source = Source(("x.arff",), "arff_table")
    with pytest.raises(ValueError, match="no line '@data'"):
        converted([b"@relation x"], source, entry)


# Archives -----------------------------------------------------------------------------------------


def tar_of(name, content):
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w:gz") as archive:
        member = tarfile.TarInfo(name)
        member.size = len(content)
        archive.addfile(member, io.BytesIO(content))
    return stream.getvalue()


# Digits -------------------------------------------------------------------------------------------


def fields_of(name, contents, source=0):
    entry = registry()[name]
    return read_fields(converted(contents, entry.sources[source], entry), entry)


def test_pen_digits():
    rows = [b" 47,100, 27, 81, 57, 37, 26,  0,  0, 23, 56, 53,100, 90, 40, 98, 8\r\n"]
    rows += [b" 88, 92,  2, 99, 16, 66, 94, 37, 70,  0,  0, 24, 42, 65,100,100, 8\n"] * 2
    fields = fields_of("pendigits", [rows[0] * 3, rows[1]])
    assert fields["data"].shape == (4, 16)
    assert fields["is_test"].tolist() == [False, False, False, True]
    assert fields["data"][0, :4].tolist() == [47, 100, 27, 81]
    assert fields["X_test"][0, 0] == 88
    assert fields["target_names"].tolist() == ["8"]


def zip_digit(label, value):
    return f"{label:.4f} {' '.join([f'{value:.4f}'] * 256)} \n".encode()


def test_usps_from_both_formats():
    train = gzip.compress(zip_digit(6, -0.631) + zip_digit(0, 1))
    test = gzip.compress(zip_digit(9, 0.862))
    plain = fields_of("usps", [train, test])
    assert plain["data"].dtype == np.float32
    assert plain["data"][:, 0].tolist() == np.float32([-0.631, 1, 0.862]).tolist()
    assert plain["target_names"][plain["target"]].tolist() == ["6", "0", "9"]

    def svmlight(label, value):
        return f"{label + 1} {' '.join(f'{i}:{value}' for i in range(1, 257))}\n".encode()

    files = [svmlight(6, -0.631) + svmlight(0, 1), svmlight(9, 0.862)]
    sparse = fields_of("usps", [bz2.compress(file) for file in files], source=1)
    assert arrays_sha256(sparse) == arrays_sha256(plain)


def idx(array):
    head = bytes([0, 0, 8, array.ndim]) + np.array(array.shape, dtype=">u4").tobytes()
    return gzip.compress(head + array.astype(np.uint8).tobytes())


def test_idx():
    train = np.arange(3 * 28 * 28).reshape(3, 28, 28) % 251
    labels = np.array([5, 0, 4])
    fields = fields_of("mnist", [idx(train), idx(labels), idx(train[:1]), idx(labels[:1])])
    np.testing.assert_array_equal(fields["images"], [*train, train[0]])
    assert fields["target_names"][fields["target"]].tolist() == ["5", "0", "4", "5"]
    assert len(fields["X_train"]) == 3


# Leaves, shapes, matrices -------------------------------------------------------------------------


def leaf_files():
    facts = [("p1", "zeta", "B", 1), ("p2", "alpha", "B", 2), ("p3", "mu", "A", 3)]
    facts += [("p4", "zeta", "B", 4)]
    points = [[i + 0.25 * j for j in range(30)] for i in range(len(facts))]
    landmarks = "\r".join("\t".join(map(str, row)) for row in points)
    header = "plant\tspecies\tclass\tontogeny\ttotal\theteroblasty\tx1\ty1"
    rows = ["\t".join(map(str, [*fact, 9, 8, -1.0, -2.0])) for fact in facts]
    return [landmarks.encode(), "\r".join([header, *rows]).encode()]


def test_passiflora_joins_two_files():
    fields = fields_of("passiflora", leaf_files())
    assert fields["landmarks"].shape == (4, 15, 2)
    assert fields["landmarks"][1, 1].tolist() == [1.5, 1.75]
    assert fields["species"].tolist() == ["zeta", "alpha", "mu", "zeta"]
    assert fields["target_names"][fields["target"]].tolist() == ["B", "B", "A", "B"]
    assert (fields["ontogeny"].tolist(), fields["total"].tolist()) == ([1, 2, 3, 4], [9] * 4)
    landmarks, facts = leaf_files()
    with pytest.raises(ValueError, match="4 leaves have landmarks, but 3 have facts"):
        fields_of("passiflora", [landmarks, facts.rpartition(b"\r")[0]])


def r_file(tmp_path, objects):
    rdata = pytest.importorskip("rdata", reason="R data need rdata")
    file = tmp_path / "objects.rda"
    rdata.write_rda(file, objects)
    return file.read_bytes()


def test_r_arrays_and_lists(tmp_path):
    landmarks = np.arange(24.0).reshape(3, 2, 4)  # landmarks, axes, samples
    content = r_file(tmp_path, {"digit3.dat": landmarks})
    fields = fields_of("digit3", [content], source=1)
    assert fields["data"].shape == (4, 3, 2)
    np.testing.assert_array_equal(fields["data"][1], landmarks[:, :, 1])
    assert fields["target"] is None
    packed = tar_of("shapes/data/digit3.dat.rda", content)
    np.testing.assert_array_equal(fields_of("digit3", [packed])["data"], fields["data"])

    groups = np.array(["s", "c", "l", "c"])
    listed = {"x": landmarks, "group": groups, "outlines": landmarks[:2] + 0.5}
    fields = fields_of("mice_vertebrae", [r_file(tmp_path, {"mice": listed})], source=1)
    assert fields["target_names"][fields["target"]].tolist() == groups.tolist()
    assert fields["outlines"].shape == (4, 2, 2)
    with pytest.raises(ValueError, match=r"no object 'macaques'; it has \['digit3\.dat'\]"):
        fields_of("macaques_skulls_3d", [content], source=1)


# Motion -------------------------------------------------------------------------------------------

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
UNIT = 0.0254 / 0.5  # metres


def test_rest_pose_and_turned_pose():
    positions = joint_positions(parse_asf(ASF), parse_amc(AMC)) / UNIT
    rest = [[1, 2, 3], [1, 4, 3], [4, 4, 3], [1, 2, 4]]
    np.testing.assert_allclose(positions[0], rest, atol=1e-12)
    # Root: x to y, y to -x. Upper: y to z. Lower, a child of upper, turns about the axis that
    # its frame (z by 90 degrees) makes of x, which is y, and so turns x to -z.
    root = np.array([[0, -1, 0], [1, 0, 0], [0, 0, 1]])
    upper = np.array([[1, 0, 0], [0, 0, -1], [0, 1, 0]])
    ends = [[0, 0, 0], root @ upper @ [0, 2, 0]]
    ends += [ends[1] + root @ upper @ [0, 0, -3], root @ [0, 0, 1]]
    np.testing.assert_allclose(positions[1], ends, atol=1e-12)


def test_broken_skeletons_and_motions():
    for old, new, message in (
        ("angle deg", "angle rad", "angles in 'rad'"),
        ("axis 0 0 90  XYZ", "axis 0 0 90  ZYX", "'lower' has axis order 'ZYX'"),
        ("lower 90", "lower 90 90", "Frame 2 .* 2 numbers for bone 'lower'.* expects 1"),
    ):
        assert old in ASF + AMC
        with pytest.raises(ValueError, match=message):
            joint_positions(parse_asf(ASF.replace(old, new)), parse_amc(AMC.replace(old, new)))


def test_motion_set_of_two_trials():
    asf = ASF.replace("\n", "\r\n").encode()
    fields = fields_of("cmu_walk_02", [asf, AMC.replace("\n", "\r\n").encode(), AMC.encode()])
    assert fields["frames"].shape == (4, 4, 3)
    assert fields["frames"].dtype == np.float32
    assert fields["trial"].tolist() == [0, 0, 1, 1]
    assert fields["trials"].tolist() == ["02_01", "02_02"]
    assert fields["joints"].tolist() == ["root", "upper", "lower", "stump"]
    assert fields["parents"].tolist() == [-1, 0, 1, 0]
    np.testing.assert_array_equal(fields["frames"][:2], fields["frames"][2:])


def test_faces_in_an_archive():
    pytest.importorskip("PIL", reason="reading pictures needs pillow")
    pixels = np.arange(6, dtype=np.uint8).reshape(2, 3)
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        archive.writestr("README", "text")
        for person, number in [(10, 1), (2, 10), (2, 2), (1, 1)]:
            body = (pixels + 10 * person + number).tobytes()
            archive.writestr(f"att_faces/s{person}/{number}.pgm", b"P5\n3 2\n255\n" + body)
    fields = fields_of("orl_faces", [stream.getvalue()])
    assert fields["target_names"][fields["target"]].tolist() == ["1", "2", "2", "10"]
    assert fields["images"][:, 0, 0].tolist() == [11, 22, 30, 101]
    assert fields["images"].shape == (4, 2, 3)


def test_connectomes_fill_both_triangles():
    triangle = np.linspace(-0.5, 0.5, 378)
    rows = [f"{subject},{','.join(map(repr, (triangle + subject).tolist()))}" for subject in (7, 9)]
    files = ["\n".join(["Id,FNC1", *rows]).encode(), b"Id,Class\n7,1\n9,0\n"]
    fields = fields_of("connectomes", files)
    assert fields["data"].shape == (2, 28, 28)
    assert fields["data"][1, 0, 1] == fields["data"][1, 1, 0] == triangle[0] + 9
    assert fields["data"][0, 0, 3] == triangle[2] + 7  # row by row
    assert fields["data"][0, 26, 27] == triangle[-1] + 7
    assert np.all(np.diagonal(fields["data"], axis1=1, axis2=2) == 1)
    assert fields["target"].tolist() == [1, 0]
    with pytest.raises(ValueError, match="other subjects"):
        fields_of("connectomes", [files[0], b"Id,Class\n9,0\n7,1\n"])
