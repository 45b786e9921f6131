"""The formats that experiments/data/convert.py reads, on small files."""

import io
import tarfile

import numpy as np
import pytest

from orthodrome.datasets._readers import Source, arrays_sha256, read_fields, registry
from published import (
    AMC,
    ASF,
    LANDMARKS,
    PUBLISHED,
    TRIANGLE,
    acclaim,
    connectomes,
    convert,
    leaves,
    r_file,
    source_of,
)

joint_positions, parse_amc = acclaim.joint_positions, acclaim.parse_amc
parse_asf, converted = acclaim.parse_asf, convert.converted


def test_every_source_has_a_converter():
    parsers = {source.parser for entry in registry().values() for source in entry.sources}
    assert parsers - {""} == convert.ALL_CONVERTERS.keys() == PUBLISHED.keys()


def read(parser, folder=None):
    """Return the fields of the small file for a converter."""
    entry, source = source_of(parser)
    return read_fields(converted(PUBLISHED[parser][2](folder), source, entry), entry)


def fields_of(name, contents, source=0):
    entry = registry()[name]
    return read_fields(converted(contents, entry.sources[source], entry), entry)


#: For each converter, fields of its small file: labels, and the first number of each row.
CONTENTS = {
    "arff_table": (["Hernia"], [63.0278175]),
    "pen_digits": (["8"] * 4, [47, 47, 47, 88]),
    "zip_digits": (["6", "0", "9"], np.float32([-0.631, 1, 0.862]).tolist()),
    "idx_digits": (["5", "0", "4", "5"], [0, 31, 62, 0]),
    "face_archive": (["1", "2", "2", "10"], [11, 22, 30, 101]),
}


@pytest.mark.parametrize("parser", CONTENTS)
def test_labels_and_first_numbers(parser):
    fields = read(parser)
    rows = fields["images" if "images" in fields else "data"]
    labels = fields["target_names"][fields["target"]].tolist()
    assert (labels, rows.reshape(len(rows), -1)[:, 0].tolist()) == CONTENTS[parser]
    if "is_test" in fields:
        assert fields["is_test"].tolist() == [False] * (len(rows) - 1) + [True]


def test_both_formats_of_usps_agree():
    assert arrays_sha256(read("libsvm_digits")) == arrays_sha256(read("zip_digits"))


def test_arff_without_data():
    source = Source(("x.arff",), "arff_table")
    with pytest.raises(ValueError, match="no line '@data'"):
        converted([b"@relation x"], source, registry()["vertebral_column_3c"])


def tar_of(name, content):
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w:gz") as archive:
        member = tarfile.TarInfo(name)
        member.size = len(content)
        archive.addfile(member, io.BytesIO(content))
    return stream.getvalue()


# Leaves, shapes, matrices -------------------------------------------------------------------------


def test_passiflora_joins_two_files():
    fields = read("passiflora")
    assert fields["landmarks"].shape == (4, 15, 2)
    assert fields["landmarks"][1, 1].tolist() == [1.5, 1.75]
    assert fields["species"].tolist() == ["zeta", "alpha", "mu", "zeta"]
    assert fields["target_names"][fields["target"]].tolist() == ["B", "B", "A", "B"]
    assert (fields["ontogeny"].tolist(), fields["total"].tolist()) == ([1, 2, 3, 4], [9] * 4)
    landmarks, facts = leaves()
    with pytest.raises(ValueError, match="4 leaves have landmarks, but 3 have facts"):
        fields_of("passiflora", [landmarks, facts.rpartition(b"\r")[0]])


def test_r_arrays_and_lists(tmp_path):
    landmarks = LANDMARKS
    content = r_file(tmp_path, {"digit3.dat": landmarks})
    fields = read("r_shapes", tmp_path)
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


def test_connectomes_fill_both_triangles():
    fields, triangle = read("connectomes"), TRIANGLE
    assert fields["data"].shape == (2, 28, 28)
    assert fields["data"][1, 0, 1] == fields["data"][1, 1, 0] == triangle[0] + 9
    assert fields["data"][0, 0, 3] == triangle[2] + 7  # row by row
    assert fields["data"][0, 26, 27] == triangle[-1] + 7
    assert np.all(np.diagonal(fields["data"], axis1=1, axis2=2) == 1)
    assert fields["target"].tolist() == [1, 0]
    with pytest.raises(ValueError, match="other subjects"):
        fields_of("connectomes", [connectomes()[0], b"Id,Class\n9,0\n7,1\n"])
