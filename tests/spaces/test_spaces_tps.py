"""TPS files: exact round trips, dialects, and errors that name the line."""

import io
import math
import re
from itertools import chain

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from laws_shapes import PLAIN, POINTS
from orthodrome.spaces import TPSFile, read_tps, write_tps

CURVED = "LM=1\n1 2\nCURVES=2\nPOINTS=2\n3 4\n5 6\nPOINTS=1\n7 8\nID=a\nSCALE=10\n"


def parse(text, **options):
    return read_tps(io.StringIO(text, newline=""), **options)


def assert_same(file, other):
    assert isinstance(file, TPSFile)
    np.testing.assert_array_equal(file.landmarks, other.landmarks)
    np.testing.assert_array_equal(file.scales, other.scales)
    assert (file.ids, file.images) == (other.ids, other.images)
    assert (file.comments, file.other) == (other.comments, other.other)


# Lines are stripped when read, and zero bytes mean a binary file.
LINES = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\r\n\0"), max_size=8)
TEXTS = LINES.map(str.strip)
FLOATS = st.floats(allow_infinity=False, width=64)
SCALES = st.floats(min_value=0, exclude_min=True, allow_infinity=False) | st.just(math.nan)
TAKEN = {"LM", "LM3", "ID", "IMAGE", "SCALE", "CURVES", "OUTLINES", "POINTS", "COMMENT", "COMMENTS"}
KEYS = st.from_regex(r"[A-Z_][A-Z0-9_. É-]{0,6}", fullmatch=True).filter(
    lambda key: key == key.strip() and key not in TAKEN
)


@st.composite
def contents(draw):
    """Arguments of write_tps."""
    n, k, d = draw(st.integers(1, 4)), draw(st.integers(0, 4)), draw(st.sampled_from([2, 3]))

    def each(strategy):
        return draw(st.lists(strategy, min_size=n, max_size=n))

    several = st.lists(TEXTS, min_size=1, max_size=3).map("\n".join)
    curve = st.integers(0, 3).flatmap(lambda m: hnp.arrays(np.float64, (m, d), elements=FLOATS))
    return draw(hnp.arrays(np.float64, (n, k, d), elements=FLOATS)), {
        "ids": each(TEXTS.filter(bool)),
        "images": each(st.none() | TEXTS.filter(bool)),
        "scales": np.array(each(SCALES)),
        "curves": each(st.lists(curve, max_size=2)),
        "comments": each(st.none() | several.filter(bool)),
        "other": each(st.dictionaries(KEYS, several, max_size=2)),
    }


def wholly_missing(points):
    """Points with NaN in all coordinates where one of them is missing."""
    return np.where(np.isnan(points).any(axis=-1, keepdims=True), np.nan, points)


@pytest.mark.filterwarnings("ignore:.*only negative coordinates:UserWarning")
@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(contents())
def test_round_trips_are_exact(tmp_path_factory, case):
    landmarks, texts = case
    path = tmp_path_factory.mktemp("tps") / "file.tps"
    write_tps(path, landmarks, **texts)
    file = read_tps(path, missing="nan", negative="keep")
    assert file.landmarks.shape == landmarks.shape
    assert file.landmarks.dtype == np.float64
    assert file.landmarks.tobytes() == wholly_missing(landmarks).tobytes()
    np.testing.assert_array_equal(file.scales, texts["scales"])
    assert file.ids == texts["ids"]
    assert file.images == texts["images"]
    assert file.comments == texts["comments"]
    assert [len(curves) for curves in file.curves] == [len(curves) for curves in texts["curves"]]
    for ours, theirs in zip(chain(*file.curves), chain(*texts["curves"]), strict=True):
        np.testing.assert_array_equal(ours, wholly_missing(theirs))
    assert file.other == texts["other"]


DIALECTS = {
    "lower case": re.sub("[A-Z]+=", lambda match: match[0].lower(), PLAIN),
    "blanks at the equals sign": PLAIN.replace("=", "  =\t "),
    "CRLF": PLAIN.replace("\n", "\r\n"),
    "CR alone": PLAIN.replace("\n", "\r"),
    "blank lines": PLAIN.replace("\n", "\n\n \t\n"),
    "indented": PLAIN.replace("\n", "  \n   "),
    "no last line end": PLAIN.strip(),
    "byte-order mark": "\ufeff" + PLAIN,
    "Ctrl-Z of DOS": PLAIN + "\x1a",
    "remarks": PLAIN.replace("\n", '\n# LM=9\n"LM=9\n  // LM=9\n'),
    "remarks behind coordinates": PLAIN.replace("2.75", "2.75 # tip").replace("4", "4// x=1\t"),
    "exponents": PLAIN.replace("100 0.25", "1e2 2.5E-01").replace("1.5 ", "+.15e+1 "),
    "decimal commas": re.sub(r"(?<=[0-9])\.(?=[0-9])", ",", PLAIN),
    "commas between": re.sub("(?<=[0-9]) ", ",", PLAIN),
    "blanks before commas": re.sub("(?<=[0-9]) ", " ,", PLAIN),
}


@pytest.mark.parametrize("text", DIALECTS.values(), ids=DIALECTS)
def test_dialects_agree(text):
    file = parse(text)
    np.testing.assert_array_equal(file.landmarks, POINTS)
    np.testing.assert_array_equal(file.scales, [0.5, 0.25])
    assert file.ids == ["edulis_1", "caerulea_2"]
    assert file.images == ["photos/edulis_1.jpg", "photos/caerulea_2.jpg"]
    assert_same(file, parse(PLAIN))


def test_a_specimen_without_id_has_the_stem_of_its_image_or_its_number():
    body = "LM=1\n1 2\n"
    file = parse(
        f"{body}IMAGE=C:\\my photos\\fish 1.tar.jpg\n{body}IMAGE=a/b/c.png\n{body}ID=\nIMAGE="
        f"\nSCALE=\n{body}ID=x=y"
    )
    assert file.ids == ["fish 1.tar", "c", "3", "x=y"]
    assert file.images == ["C:\\my photos\\fish 1.tar.jpg", "a/b/c.png", None, None]
    assert np.isnan(file.scales).all()


def test_encodings(tmp_path):
    text = "LM=1\n1 2\nID=Gümüş é\n"
    (tmp_path / "utf8.tps").write_text(text, encoding="utf-8")
    assert read_tps(tmp_path / "utf8.tps").ids == ["Gümüş é"]
    (tmp_path / "signed.tps").write_text(text, encoding="utf-8-sig")
    assert read_tps(str(tmp_path / "signed.tps")).ids == ["Gümüş é"]
    (tmp_path / "latin.tps").write_bytes("LM=1\r\n1 2\r\nID=é".encode("latin-1"))
    assert read_tps(tmp_path / "latin.tps").ids == ["é"]
    (tmp_path / "undefined.tps").write_bytes(b"LM=1\n1 2\nID=\x81\xe9")  # 81 is not in cp1252
    assert read_tps(tmp_path / "undefined.tps").ids == ["\x81é"]
    with (
        open(tmp_path / "latin.tps", encoding="utf-8") as file,
        pytest.raises(ValueError, match="codec can't decode"),
    ):
        read_tps(file)
    with open(tmp_path / "latin.tps", encoding="latin-1") as file:
        assert read_tps(file).ids == ["é"]


def test_commas_have_one_meaning_in_a_file():
    np.testing.assert_array_equal(parse("LM=1\n1,5 2").landmarks, [[[1.5, 2]]])
    np.testing.assert_array_equal(parse("LM3=1\n1,5 2 -3e1").landmarks, [[[1.5, 2, -30]]])
    np.testing.assert_array_equal(parse("LM=1\n1,2").landmarks, [[[1, 2]]])
    assert parse("LM=1\n1 2\nSCALE=0,05").scales == [0.05]
    for line in ("1,5,2,75", "1,234.5 2", "1.5,2.5 3", ",5 1", "1, 2,", "1,5, 2,75", "1 2,3,4"):
        with pytest.raises(ValueError, match="line 2: expected 2 coordinates"):
            parse(f"LM=1\n{line}\n")
    with pytest.raises(ValueError, match=r"line 3: commas are separators .* decimal .* line 2"):
        parse("LM=2\n1,5 2,5\n1,5\n")


def test_curves_are_kept_apart():
    for text in (CURVED, CURVED.replace("CURVES", "OUTLINES")):
        file = parse(text)
        np.testing.assert_array_equal(file.landmarks, [[[1, 2]]])
        np.testing.assert_array_equal(file.curves[0][0], [[3, 4], [5, 6]])
        np.testing.assert_array_equal(file.curves[0][1], [[7, 8]])
        assert file.scales == [10]


@pytest.mark.parametrize("mark", ["NA NA", "nan NaN", "? ?", "-1 -1", "-1 NA", "NA,NA", "-2,5 -3"])
def test_a_missing_landmark_is_named_or_nan(mark):
    text = f"LM=3\n1 2\n{mark}\n3 0\nID=x"
    with pytest.raises(ValueError, match=r"line 3: landmark 2 \(index 1\) of specimen 'x' \(in"):
        parse(text)
    points = parse(text, missing="nan").landmarks
    np.testing.assert_array_equal(points, [[[1, 2], [math.nan, math.nan], [3, 0]]])


@pytest.mark.parametrize("missing", ["error", "nan"])
def test_negative_positions_are_never_lost_silently(missing, tmp_path):
    centred = POINTS - POINTS.mean(axis=1, keepdims=True)
    with pytest.warns(UserWarning, match=r"of specimen 2 .* read_tps\(path, negative='keep'\)"):
        write_tps(tmp_path / "a.tps", centred)
    with pytest.raises(ValueError, match=r"line \d+: negative .* both signs.*negative='keep'"):
        read_tps(tmp_path / "a.tps", missing=missing)
    kept = read_tps(tmp_path / "a.tps", missing=missing, negative="keep").landmarks
    np.testing.assert_array_equal(kept, centred)
    with pytest.raises(ValueError, match=r"line 2: .* all points are negative"):
        parse("LM=2\n-1 -2\n-3 -4", missing=missing)
    # no landmark has negative coordinates only
    np.testing.assert_array_equal(parse("LM=1\n-1 0", missing=missing).landmarks, [[[-1, 0]]])


BAD = {
    "empty": ("", 1, "no LM="),
    "no landmarks": ("ID=a\nIMAGE=b\n", 2, "no LM="),
    "landmarks of the last": ("ID=a\nLM=1\n1 2\nID=b\n\nSCALE=2", 4, "last specimen.* has no LM="),
    "too few at the end": ("LM=3\n1 2\n3 4\n\n", 3, "declares 3 lines.* 2 before the end"),
    "too few": ("LM=3\n1 2\n3 4\nID=a\n", 4, "declares 3 lines.* 2 before this line"),
    "too many": ("LM=1\n1 2\n3 4\nID=a\n", 3, "the count after LM= .* is too small"),
    "text": ("LM=1\n1 2\nhello\n", 3, "expected a field"),
    "not a number": ("LM=1\n1 x2\n", 2, "'x2' is not a number"),
    "remark with =": ("LM=2\n1 2 # a=b\n3 # 4\n", 3, "expected 2 coordinates, found 1"),
    "infinite": ("LM=1\n1 inf\n", 2, "'inf' is not a number"),
    "too large": ("LM=1\n1 1e400\n", 2, "too large"),
    "one coordinate": ("LM=1\n1\n", 2, "expected 2 coordinates, found 1"),
    "three coordinates": ("LM=1\n1 2 3\n", 2, "found 3; use LM3= for three"),
    "count": ("# x\nLM=two\n", 2, "LM= needs a whole number, got 'two'"),
    "huge count": ("LM=" + "9" * 5000, 1, "LM= needs a whole number"),
    "two ids": ("LM=1\n1 2\nID=a\nID=b\n", 4, "a second ID=.* line 3"),
    "two curves": (CURVED + "CURVES=0\n", 11, "a second CURVES="),
    "curves first": ("CURVES=1\nPOINTS=1\n1 2\nLM=1\n1 2", 1, "curves before the landmarks"),
    "curve absent": ("LM=1\n1 2\nCURVES=1\nID=a\n", 4, "CURVES=1 on line 3.*expected block 1"),
    "curve cut": ("LM=1\n1 2\nCURVES=1\nPOINTS=2\n3 4\nID=a", 6, "POINTS=2 on line 4"),
    "points alone": ("LM=1\n1 2\nPOINTS=1\n3 4\n", 3, "POINTS= is not declared"),
    "scale": ("LM=1\n1 2\nSCALE=five\n", 3, "'five' is not a number"),
    "other number": (PLAIN + "LM=2\n1 2\n3 4\nID=c", 15, r"'c' \(index 2\) has 2 land.* has 3"),
    "other dimension": (PLAIN + "LM3=3\n1 2 3\n4 5 6\n7 8 9\nID=c", 15, "'c' .* 3 dim.*'edulis_1'"),
}


@pytest.mark.parametrize(("text", "line", "reason"), BAD.values(), ids=BAD)
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"], ids=["LF", "CRLF", "CR"])
def test_errors_give_the_file_the_line_and_the_reason(tmp_path, text, line, reason, end):
    path = tmp_path / "bad.tps"
    path.write_bytes(text.replace("\n", end).encode())
    shown = [*text.split("\n"), ""][line - 1].strip()[:60]
    expected = rf"bad\.tps, line {line}: .*{reason}.*\. The line is {re.escape(repr(shown))[:-1]}"
    with pytest.raises(ValueError, match=expected):
        read_tps(path)


def test_files_that_cannot_be_read(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"absent\.tps"):
        read_tps(tmp_path / "absent.tps")
    path = tmp_path / "picture.tps"
    path.write_bytes(b"LM=1\n\x89PNG\r\n\x00\x00\xff\xfe")
    with pytest.raises(ValueError, match=r"picture\.tps, line 3: .*binary or UTF-16"):
        read_tps(path)
    path.write_text(PLAIN, encoding="utf-16")
    with pytest.raises(ValueError, match="binary or UTF-16"):
        read_tps(path)
    path.write_bytes(bytes(range(128, 256)) * 3)
    with pytest.raises(ValueError, match=r"line \d+: .*…'"):
        read_tps(path)
    with pytest.raises(ValueError, match="path of read_tps"):
        read_tps(None)
    for name in ("missing", "negative"):
        with pytest.raises(ValueError, match=f"{name} of read_tps must be one of"):
            parse(PLAIN, **{name: "drp"})


def test_labels():
    file = parse(PLAIN.replace("photos/c", "others\\c"))
    assert file.labels("^([a-z]+)_").tolist() == ["edulis", "caerulea"]
    assert file.labels(r"(\d)$").tolist() == ["1", "2"]
    assert file.labels(r"^(\w+)[/\\]", of="images").tolist() == ["photos", "others"]
    assert file.labels(r"([a-z]+)_(?P<label>\d)").tolist() == ["1", "2"]
    without = parse(PLAIN.replace("IMAGE=photos/c", "IMAGEOF="))
    for call, message in [
        (lambda: file.labels("^(ed)"), "no label in 1 of 2 names: 'caerulea_2'"),
        (lambda: file.labels("(x)?"), "no label in 2 of 2 names"),
        (lambda: file.labels("edulis"), "needs a group"),
        (lambda: file.labels("("), "not a regular expression"),
        (lambda: without.labels("(.)", of="images"), "no label in 1 of 2 names: None"),
        (lambda: file.labels("(.)", of="comments"), "of of labels must be one of"),
    ]:
        with pytest.raises(ValueError, match=message):
            call()


ONE = np.ones((1, 2, 2))
REJECTED = {
    "line break in an id": ({"ids": ["a\nb"]}, "cannot write .* line 5: .*'b'"),
    "field in an id": ({"ids": ["a\nSEX=f"]}, r"ids of .* has 'a\\nSEX=f' .* read back as 'a'"),
    "return in a comment": ({"comments": ["a\rCOMMENT=b"]}, "comments of .* for specimen 1 "),
    "zero byte": ({"comments": ["a\0"]}, "null bytes"),
    "lone surrogate": ({"comments": ["\ud800"]}, "surrogates"),
    "blank ends": ({"ids": ["a "]}, "ids of write_tps has 'a ' for specimen 1 "),
    "empty id": ({"ids": [""]}, r"has '' for specimen 1 \(index 0\)"),
    "number for a comment": ({"comments": [3]}, "comments of .* has 3 for"),
    "too many ids": ({"ids": ["a", "b"]}, "one entry for each of the 1 specimens; got "),
    "scale 0": ({"scales": [0.0]}, "1 positive finite numbers"),
    "scale infinite": ({"scales": [math.inf]}, "scales contains infinity"),
    "curve in space": ({"curves": [[np.ones((2, 3))]]}, "expected 2 coordinates, found 3"),
    "infinite curve": ({"curves": [[[[1.0, math.inf]]]]}, "'inf' is not a number"),
    "reserved name": ({"other": [{"OUTLINES": "0"}]}, "'OUTLINES': '0'} for specimen 1 .* reserve"),
    "name in small letters": ({"other": [{"sex": "f"}]}, "'sex': 'f'} .* in capitals"),
    "name of digits": ({"other": [{"1": "f"}]}, "expected a field .*'1=f'"),
    "number in other": ({"other": [{"AGE": 3}]}, "'AGE': 3} .* read back as {'AGE': '3'}"),
}


@pytest.mark.parametrize(("texts", "reason"), REJECTED.values(), ids=REJECTED)
def test_fields_that_could_not_be_read_back_raise(tmp_path, texts, reason):
    path = tmp_path / "a.tps"
    path.write_text("old")
    with pytest.raises(ValueError, match=reason):
        write_tps(path, ONE, **texts)
    assert [file.name for file in tmp_path.iterdir()] == ["a.tps"]
    assert path.read_text() == "old"


def test_landmarks_and_places_that_cannot_be_written(tmp_path):
    path = tmp_path / "a.tps"
    lists = [[[1, 2, math.inf, 4, 5, 6]], [[["a", "b"]]], [[[1, 2]], [[1, 2], [3, 4]]]]
    for bad in (np.ones((2, 2)), np.ones((0, 3, 2)), np.ones((2, 3, 2)) * 1j, *lists):
        with pytest.raises(ValueError, match="landmarks of write_tps must"):
            write_tps(path, bad)
    with pytest.raises(FileNotFoundError, match="absent"):
        write_tps(tmp_path / "absent" / "a.tps", POINTS)
    write_tps(path, POINTS.reshape(2, -1).view(complex))
    np.testing.assert_array_equal(read_tps(path).landmarks, POINTS)
