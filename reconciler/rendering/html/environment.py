"""HTML pages that stand alone: one file with its style and script inside, which needs no network and allows none.

Values are escaped by the template engine without exception. What may run is named by its digest in the page's own
security policy, so that even a value that got through as markup could neither run nor load anything.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from functools import cache
from importlib import resources
from typing import Any, Final

import jinja2
from markupsafe import Markup, escape

# The templates are part of the program as its modules are, and are read as modules are: once, on import.
_FILES: Final = {
    file.name: file.read_text(encoding="utf-8") for file in resources.files(__package__).joinpath("templates").iterdir()
}


def render_template(template: str, *, scripts: tuple[str, ...] = ("page.js",), **values: Any) -> str:
    """The page of that template. `values` are plain text, or lists and objects of it."""
    style, script = _part("page.css"), "\n".join(map(_part, scripts))
    policy = "; ".join(
        [
            "default-src 'none'",
            f"style-src '{_digest(style)}'",
            f"script-src '{_digest(script)}'",
            "base-uri 'none'",
            "form-action 'none'",
        ]
    )
    inside = {"style": Markup(style), "script": Markup(script), "policy": policy}  # noqa: S704 - our own files
    return _environment().get_template(template).render(**inside, **values) + "\n"


def render_fragment(template: str, **values: Any) -> Markup:
    """A part of a page, as a value for another template."""
    return Markup(_environment().get_template(template).render(**values))  # noqa: S704 - escaped by the engine


def encode_data(value: Any) -> Markup:
    """JSON for a `<script type="application/json">`, which no text in it can end."""
    text = (
        json.dumps(value, separators=(",", ":")).replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
    )
    return Markup(text.replace("##", "#\\u0023"))  # noqa: S704 - without any character of markup


def format_prose(text: str) -> Markup:
    """A sentence as HTML, with what it has in backticks as code; escaped like any other text."""
    return Markup(_QUOTED.sub(r"<code>\1</code>", str(escape(text))))  # noqa: S704 - escaped


_QUOTED = re.compile(r"`([^`\n]+)`")


@cache
def _environment() -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.DictLoader(_FILES),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
    )
    environment.filters["prose"] = format_prose
    return environment


def _part(name: str) -> str:
    return _FILES[name].strip()


def _digest(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
