"""Sphinx: `make docs` builds docs/_build/html, without the network and with warnings as errors."""

import os
import sys
import warnings
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "_ext"))

# Examples compute with one thread each, as the tests do, and draw without a display.
os.environ.setdefault("MPLBACKEND", "Agg")

import orthodrome

project = "orthodrome"
author = "orthodrome developers"
copyright = "orthodrome developers, BSD-3-Clause"
version = release = orthodrome.__version__

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "numpydoc",
    "myst_parser",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
    "thumbnails",
    "mathml",
    "repository_pages",
    "command_help",
    "measured",
    "accuracy",
    "api_names",
    "default_choices",
]
# guide/defaults includes the pages of docs/defaults
exclude_patterns = ["_build", "_templates", "images", "defaults"]
templates_path = ["_templates"]
source_suffix = {".rst": "restructuredtext", ".md": "markdown"}
root_doc = "index"
default_role = "literal"  # `name` in a docstring is a parameter or an attribute
nitpicky = True
# No inventories of other projects: their names are shown, not linked.
nitpick_ignore_regex = [("py:.*", r"(sklearn|scipy|numpy|matplotlib|skimage|rich)\..*")]
show_warning_types = True
# The copy button omits prompts and output.
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True
smartquotes = False  # types of parameters are full of quotation marks

# ------------------------------------------------------------------------------ Markdown
myst_enable_extensions = ["dollarmath", "colon_fence", "deflist", "attrs_inline"]
myst_heading_anchors = 3
myst_dmath_double_inline = True

# ------------------------------------------------------------------------------ API
autosummary_generate = True
autodoc_typehints = "none"  # numpydoc's sections say it, with the shapes
autodoc_member_order = "bysource"
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False

# ------------------------------------------------------------------------------ mathematics
html_math_renderer = "mathml"

# ------------------------------------------------------------------------------ gallery
warnings.filterwarnings("ignore", "FigureCanvasAgg is non-interactive")
sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "gallery",
    "filename_pattern": r"/plot_",
    "within_subsection_order": "FileNameSortKey",
    "backreferences_dir": "api/backreferences",
    "doc_module": ("orthodrome",),
    "reference_url": {"orthodrome": None},
    "capture_repr": (),
    "download_all_examples": False,
    "show_signature": False,
    "remove_config_comments": True,
    "default_thumb_file": str(HERE / "_static/logo.svg"),  # of scripts without figures
    "image_srcset": ["2x"],
    "only_warn_on_example_error": False,
    "abort_on_example_error": False,
    "matplotlib_animations": False,
    # its own page of times would load scripts from other hosts
    "write_computation_times": False,
    "junit": "../gallery_times.xml",
}

# ------------------------------------------------------------------------------ pages
html_theme = "pydata_sphinx_theme"
html_title = "orthodrome"
html_static_path = ["_static"]
html_css_files = ["orthodrome.css"]
html_logo = "_static/logo.svg"
html_favicon = "_static/logo.svg"
html_show_sourcelink = False
html_context = {"default_mode": "auto"}
html_copy_source = False
# Pages with wide tables or long lines have no sidebar on the left.
_WIDE = ["index", "command_line", "citing", "from_scikit_learn", "glossary", "guide/defaults"]
_WIDE += ["repository/benchmarks/RESULTS", "repository/experiments/RESULTS"]
html_sidebars = {name: [] for name in _WIDE}
html_theme_options = {
    "logo": {"text": "orthodrome"},
    # icons only, so that the navigation is one line at 1,280 pixels
    "navbar_persistent": [],
    "navbar_end": ["search-button", "theme-switcher"],
    "show_prev_next": True,
    "navigation_with_keys": False,
    "header_links_before_dropdown": 7,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": [],
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}
