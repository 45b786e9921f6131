"""
Clusters of texts
=================

Cluster the documentation of SciPy's functions by topic, and describe each cluster.

Embeddings of texts are directions: only the angle between two of them matters. This example needs
no language model. It counts the words of each text, and reduces the counts to 100 dimensions. The
topic of a function is its subpackage, which the clustering does not know.
"""

# %%
# Each text is the description of a function. We remove its own name and the names of the
# subpackages, which would give the topic away. We also ignore words that describe the interface of
# a function, not its topic.

import importlib
import inspect
import re

import matplotlib.pyplot as plt
import numpy as np
from sklearn.cluster import KMeans
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS, TfidfVectorizer
from sklearn.metrics import adjusted_rand_score
from sklearn.preprocessing import normalize

from orthodrome import HypersphericalKMeans

TOPICS = ["fft", "integrate", "interpolate", "linalg", "ndimage", "optimize", "signal", "sparse"]
TOPICS += ["spatial", "special", "stats"]


def descriptions(topic):
    """Return the descriptions of the functions and classes of a subpackage, by name."""
    module, found = importlib.import_module(f"scipy.{topic}"), {}
    for name in module.__all__:
        thing = getattr(module, name)
        text = inspect.getdoc(thing) if callable(thing) or topic == "special" else None
        if text and not issubclass(thing if inspect.isclass(thing) else int, Exception):
            notes = text.partition("Notes\n-----")[2].partition("References\n---")[0]
            words = text.partition("Returns\n---")[0] + notes.partition("Examples\n---")[0]
            found[name] = re.sub(rf"\b({name}|scipy|{'|'.join(TOPICS)})\b", " ", words)
    return {name: text for name, text in found.items() if len(text) > 200}


texts, topic_of, names = [], [], []
for number, topic in enumerate(TOPICS):
    found = descriptions(topic)
    texts += found.values()
    names += [f"{topic}.{name}" for name in found]
    topic_of += [number] * len(found)
topic_of = np.array(topic_of)

ignored = ["array", "default", "int", "float", "optional", "parameters", "array_like", "ndarray"]
ignored += ["bool", "none", "true", "false", "math", "func", "ref", "numpy", "shape", "input"]
ignored += ["output", "returns", "function", "value", "values", "given", "use", "used", "axis"]
ignored += ["object", "type", "return", "specified", "str", "number", "arrays", "frac", "left"]
ignored += ["right", "class", "set", "method", "methods", "new", "note", "attributes", "results"]
ignored += ["subok", "casting", "signature", "order", "scope", "workers", "batch", "core", "nan"]
ignored += ["treated", "prepended", "slice", "slices", "masked", "propagate", "omit", "callable"]
ignored += ["backend", "compute", "computed", "result", "scalar", "keepdims", "ufunc", "dtype"]
ignored += ["random", "generator", "randomstate", "seed", "rng", "calculation", "corresponding"]
stop_words = list(ENGLISH_STOP_WORDS.union(ignored))
vectorizer = TfidfVectorizer(
    stop_words=stop_words, token_pattern=r"\b[a-z]{3,}\b", min_df=4, max_df=0.3, sublinear_tf=True
)
terms = vectorizer.fit_transform(texts)
embeddings = TruncatedSVD(100, random_state=0).fit_transform(terms).astype(np.float32)
print(f"{len(texts)} texts, {terms.shape[1]} words, {embeddings.shape[1]} dimensions")

# %%
# With the cosine kernel, :class:`~orthodrome.HypersphericalKMeans` clusters the directions of these
# vectors, whatever their lengths. There are as many clusters as topics. Ordinary k-means
# agrees less with the topics, mostly because it takes the lengths into account.

model = HypersphericalKMeans(len(TOPICS), kernel="cosine", centers="intrinsic", random_state=0)
labels = model.fit_predict(embeddings)
flat = KMeans(len(TOPICS), n_init=10, random_state=0)
others = {"k-means": embeddings, "k-means of unit vectors": normalize(embeddings)}
found = {"k-means on the sphere": labels}
found |= {name: flat.fit_predict(vectors) for name, vectors in others.items()}
for name, clusters in found.items():
    print(f"{name}: adjusted Rand index {adjusted_rand_score(topic_of, clusters):.2f}")

# %%
# The words that are more frequent in a cluster than elsewhere describe it. Most clusters belong to
# one subpackage. Related small subpackages share a cluster, such as interpolation and polynomials.
# The large subpackages ``special`` and ``stats`` are split into topics of their own.

words = vectorizer.get_feature_names_out()
counts = np.array([np.bincount(topic_of[labels == c], minlength=len(TOPICS)) for c in set(labels)])
order = np.argsort(counts.argmax(axis=1), kind="stable")
described = []
for cluster in order:
    inside, outside = (terms[labels == cluster], terms[labels != cluster])
    excess = np.asarray(inside.mean(axis=0) - outside.mean(axis=0)).ravel()
    described.append(", ".join(words[np.argsort(-excess)[:5]]))
figure, ax = plt.subplots(figsize=(10.5, 5.6), layout="constrained")
shares = counts[order] / counts[order].sum(axis=1, keepdims=True)
image = ax.imshow(shares, cmap="Blues", vmin=0, vmax=1, aspect="auto")
for (row, column), count in np.ndenumerate(counts[order]):
    if count:
        color = "white" if shares[row, column] > 0.55 else "black"
        ax.text(column, row, str(count), ha="center", va="center", color=color, fontsize=9)
ax.set_xticks(range(len(TOPICS)), TOPICS, rotation=35, ha="right")
ax.set_yticks(range(len(described)), described)
ax.tick_params(length=0)
ax.set(xlabel="subpackage of SciPy", title="Texts of each cluster, by subpackage")
figure.colorbar(image, label="fraction of the cluster", shrink=0.8)
plt.show()

# %%
# New texts are assigned to the nearest direction. The texts closest to a centre are typical of it.

angles = model.transform(embeddings)
for row, cluster in enumerate(order):
    typical = [names[i] for i in np.argsort(angles[:, cluster])[:3]]
    print(f"{described[row]:50} {', '.join(typical)}")

# sphinx_gallery_thumbnail_panel = (2, 2)
