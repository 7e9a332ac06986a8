"""Answers expressions in the spelling of Terraform, such as `${var.x}`, with what to write instead."""

from __future__ import annotations

import re
from typing import Final

from reconciler import kinds

_PATH: Final = (
    r"(?:(?:var|local|each)\.[A-Za-z_][\w-]*(?:\.[\w-]+)*|(?:data\.)?ngrok_\w+\.[\w-]+(?:\[[^\]]*\])?(?:\.[\w.-]+)?)"
)
_INSERTED: Final = re.compile(rf"(?<!\$)\$\{{\s*({_PATH})\s*\}}")
_BARE: Final = re.compile(_PATH)


def find_inserted(text: str) -> str | None:
    """The remedy for the first `${…}` of Terraform in a text; None if there is none.

    Other expressions with one brace belong to the platform: `${req.host}`.
    """
    found = _INSERTED.search(text)
    return _suggest(found[1], is_whole=found[0] == text.strip()) if found else None


def find_bare(text: str) -> str | None:
    """The remedy for a text that is one expression of Terraform without `${…}`; None for any other text."""
    return _suggest(text.strip(), is_whole=True) if _BARE.fullmatch(text.strip()) else None


def _suggest(expression: str, *, is_whole: bool) -> str:
    root, _, rest = expression.partition(".")
    if root == "each":
        return f"write ${{{{ {expression} }}}}, in a manifest with for_each"
    if root in ("var", "local"):
        return f"write ${{{{ var.{rest} }}}}, with {rest.partition('.')[0]} under variables: in reconciler.yaml"
    if root == "data":
        _, _, rest = rest.partition(".")
        return f"write the id of the existing object, or declare it and write {{ref: {_address(expression[5:])[0]}}}"
    address, output = _address(expression)
    if output in ("", "id"):
        return f"write {{ref: {address}}}" if is_whole else f"write ${{{{ {address} }}}}"
    return f"write ${{{{ {address}.{output} }}}}"


def _address(expression: str) -> tuple[str, str]:
    """The address that a resource of Terraform has here, and the attribute."""
    type_, _, rest = expression.partition(".")
    name, _, output = re.sub(r"\[[^\]]*\]", "", rest).partition(".")
    word = type_.removeprefix("ngrok_").replace("_", "").lower()
    known = next((kind.name for kind in kinds.declarable() if kind.name.lower() == word), "Kind")
    return f"{known}/{name}", output
