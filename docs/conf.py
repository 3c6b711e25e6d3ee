"""How the manual is built: ``pip install '.[docs]' && python -m sphinx -W docs site``."""

from __future__ import annotations

import sys
from importlib.metadata import metadata
from pathlib import Path

from sphinx_gallery.sorting import ExplicitOrder

import saddlesvm

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "_ext"))

project = "saddlesvm"
author = "the saddlesvm developers"
project_copyright = f"2026, {author}"
version = release = saddlesvm.__version__

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "numpydoc",
    "myst_parser",
    "sphinx_gallery.gen_gallery",
    "sphinx_design",
    "sphinx_copybutton",
    "command_line",
    "markdown_twins",
    "mathematics",
    "project_files",
    "public_members",
    "step_view",
]
exclude_patterns = ["examples", "checks", "_ext", "_templates", "gallery/**/*.py"]
templates_path = ["_templates"]
nitpicky = False
smartquotes = False  # quotes of options are copied into code
toc_object_entries_show_parents = "hide"

# Docstrings: numpydoc lays them out; public_members says which members of a class are shown.
autosummary_generate = True
numpydoc_show_class_members = False
numpydoc_validation_checks: set[str] = set()
autodoc_default_options = {
    "members": True,
    "undoc-members": False,
    "member-order": "bysource",
}
autodoc_typehints = "none"

# Pages: Markdown.
myst_enable_extensions = [
    "colon_fence",
    "deflist",
    "attrs_inline",
    "attrs_block",
    "dollarmath",
]
myst_heading_anchors = 4
myst_dmath_allow_labels = False
myst_dmath_allow_digits = False
myst_dmath_double_inline = True
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True

# The gallery: every file of examples/ is run, and a failure ends the build.
sphinx_gallery_conf = {
    "examples_dirs": "examples",
    "gallery_dirs": "gallery",
    "backreferences_dir": "gallery/backreferences",
    "doc_module": ("saddlesvm",),
    "filename_pattern": r"\.py$",
    "subsection_order": ExplicitOrder(
        [
            f"examples/{group}"
            for group in ("certificate", "tasks", "choosing", "kernels", "large")
        ]
    ),
    "within_subsection_order": "FileNameSortKey",
    "abort_on_example_error": True,
    "capture_repr": (),  # what a block prints is shown, not the object that its last line happens to return
    "download_all_examples": False,
    "image_srcset": ["2x"],
    "min_reported_time": 1,
    "nested_sections": False,
    "plot_gallery": True,
    "remove_config_comments": True,
    "reset_modules": (),
    "reset_modules_order": "before",
    "show_memory": False,
    "show_signature": False,
    "write_computation_times": False,  # its page loads scripts from elsewhere
}

# `python -m sphinx -b linkcheck -D plot_gallery=0 docs links` follows the links that lead out; it needs the network.
linkcheck_timeout = 20
linkcheck_retries = 2
linkcheck_report_timeouts_as_broken = True

# Links to the repository and its issues, once pyproject.toml has [project.urls] "Repository" and "Issues".
ADDRESSES = dict(
    line.split(", ", 1) for line in metadata("saddlesvm").get_all("Project-URL") or ()
)
ICONS = {"Repository": "fa-brands fa-git-alt", "Issues": "fa-solid fa-bug"}

html_theme = "pydata_sphinx_theme"
html_title = "saddlesvm"
html_static_path = ["_static"]
html_css_files = ["saddlesvm.css"]
html_favicon = "_static/saddle.svg"
html_copy_source = False
html_show_sourcelink = False
html_domain_indices = False  # the reference lists the modules
html_sidebars = {"index": []}
html_theme_options = {
    "logo": {
        "text": "saddlesvm",
        "image_light": "_static/saddle.svg",
        "image_dark": "_static/saddle.svg",
        "alt_text": "saddlesvm: to the front page",
    },
    "header_links_before_dropdown": 6,
    "navbar_align": "left",
    "navigation_with_keys": False,
    "show_prev_next": True,
    "secondary_sidebar_items": ["page-toc", "markdown-twin"],
    "icon_links": [
        {"name": name, "url": ADDRESSES[name], "icon": icon}
        for name, icon in ICONS.items()
        if name in ADDRESSES
    ],
    "footer_start": ["copyright"],
    "footer_end": [],
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}
