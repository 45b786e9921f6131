"""Published text tables and pictures, on small files written here."""

import io

import numpy as np
import pytest

from orthodrome.datasets._load import CONVERTERS
from orthodrome.datasets._readers import Source, arrays_sha256, read_fields, registry


def converted(contents, source, entry):
    return CONVERTERS[source.parser](contents, source.options, entry)


# Tables: the head of each published file, and the row it must give -------------------------------


HEADS = {
    "concrete_slump": (
        b"No,Cement,Slag,Fly ash,Water,SP,Coarse Aggr.,Fine Aggr.,SLUMP(cm),FLOW(cm),"
        b"Compressive Strength (28-day)(Mpa)\n1,273,82,105,210,9,904,680,23,62,34.99\n",
        "273,82,105,210,9,904,680,23,62,34.99",
    ),
    "parkinsons": (
        b"name,MDVP:Fo(Hz),and so on\r\nphon_R01_S01_1,119.99200,157.30200,74.99700,0.00784,"
        b"0.00007,0.00370,0.00554,0.01109,0.04374,0.42600,0.02182,0.03130,0.02971,0.06545,0.02211,"
        b"21.03300,1,0.414783,0.815285,-4.813031,0.266482,2.301442,0.284654\r\n",
        "119.992,157.302,74.997,0.00784,7e-05,0.0037,0.00554,0.01109,0.04374,0.426,0.02182,0.0313,"
        "0.02971,0.06545,0.02211,21.033,0.414783,0.815285,-4.813031,0.266482,2.301442,0.284654,1",
    ),
    "vote": (
        b"republican,n,y,n,y,y,y,n,n,n,y,?,y,y,y,n,y\n",
        "0,1,0,1,1,1,0,0,0,1,,1,1,1,0,1,republican",
    ),
}


def text_source(entry):
    """The source of a set that is a text on the network."""
    found = [s for s in entry.sources if s.parser == "text_table" and not s.local]
    return found[0] if found else None


@pytest.mark.parametrize("name", HEADS)
def test_head_of_a_published_table(name):
    entry = registry()[name]
    head, row = HEADS[name]
    content = converted([head], text_source(entry), entry)
    expected = f"{','.join(entry.columns)}\n{row}\n".encode()
    assert arrays_sha256(read_fields(content, entry)) == arrays_sha256(read_fields(expected, entry))
    assert content.decode().splitlines()[0] == ",".join(entry.columns)


def table_of(content, name="haberman", **options):
    return converted([content], Source(("x.data",), "text_table", options), registry()[name])


def test_labels_are_replaced_in_the_class_only():
    content = table_of(b"1,2,3,1\n2,1,1,2\n", labels={"1": "0", "2": "1"}, values={"3": "30"})
    assert content.decode().splitlines()[1:] == ["1,2,30,0", "2,1,1,1"]


def test_a_row_of_another_length_is_named():
    with pytest.raises(ValueError, match="Row 2 has 3 fields, expected 4"):
        table_of(b"1,2,3,4\n1,2,3\n")


# Pictures -----------------------------------------------------------------------------------------


def fields_of(name, contents, source=0):
    entry = registry()[name]
    return read_fields(converted(contents, entry.sources[source], entry), entry)


def test_halved_image_rounds_half_to_even():
    Image = pytest.importorskip("PIL.Image", reason="reading pictures needs pillow")
    pixels = np.array([[0, 1, 10, 10], [1, 0, 10, 11], [1, 2, 255, 255], [2, 1, 255, 255]])
    stream = io.BytesIO()
    Image.fromarray(pixels.astype(np.uint8)).save(stream, format="PNG")
    fields = fields_of("camera_256", [stream.getvalue()])
    assert fields["image"].tolist() == [[0, 10], [2, 255]]
    with pytest.raises(ValueError, match="not a readable image"):
        fields_of("camera_256", [b"no picture"])
