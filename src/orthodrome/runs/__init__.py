"""One run, from a file of data to files of results: what the command line does, without its words.

======================  ==========================================================================
``inputs``              files of data as arrays: csv, tsv, parquet, npy, npz, tps; images
``models``              from words to an estimator, and to the Python lines that make the same
``work``                how far a run has come, and what was warned of
``info``                what the data are, which kernel and solver suit them, what a run will take
``scales``              how far columns spread, and numbers that no method can work with
``estimates``           memory and time of a whole command, from a probe of this machine
``overheads``           the part of them that is no work: start, page and files
``memory``              how much memory there is, and refusals before it is full
``embedding``           coordinates of the rows
``clustering``          groups of the rows
``classification``      a classifier, tested or cross-validated, and predictions
``comparison``          the decompositions side by side
``denoising``           an image without its noise
``pages``               the HTML page of each result
``results``             files of results, whole or not at all
======================  ==========================================================================
"""

from .classification import Classification, classify
from .clustering import Clustering, cluster
from .comparison import Comparison, compare
from .denoising import Denoising, denoise
from .embedding import Embedding, embed
from .info import Info, describe
from .inputs import Data, InputError, read_data, read_image, write_image
from .models import Choice

__all__ = [
    "Choice",
    "Classification",
    "Clustering",
    "Comparison",
    "Data",
    "Denoising",
    "Embedding",
    "Info",
    "InputError",
    "classify",
    "cluster",
    "compare",
    "denoise",
    "describe",
    "embed",
    "read_data",
    "read_image",
    "write_image",
]
