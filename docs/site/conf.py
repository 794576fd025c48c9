"""Settings of Sphinx. `make docs` copies them beside the guides, to build/docs."""

import gc
from pathlib import Path

import twinstream

# The documents of all pages stay: a fifth of the time of the build went into searching them.
gc.set_threshold(200_000, 20, 100)

project = "Twinstream"
version = release = twinstream.__version__
author = copyright = "The Twinstream authors"

extensions = [
    "myst_parser",
    "codegen.site.quick_names",
    "codegen.site.search",
    "codegen.site.twins",
]
exclude_patterns = []
myst_heading_anchors = 4
# Docstrings have single backticks; without this they would be in italics.
default_role = "code"

html_theme = "furo"
html_title = "Twinstream"
html_search_scorer = str(Path(__file__).with_name("scorer.js"))
html_show_sourcelink = html_copy_source = False
# Without this, the sidebar of every page would list every object.
toc_object_entries = False
python_use_unqualified_type_names = True
# Names of types that are also fields of records, such as `bytes`.
suppress_warnings = ["ref.python"]
