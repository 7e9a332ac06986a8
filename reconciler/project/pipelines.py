"""The pipelines that a new project begins with: those of `examples/gitops`, which the package carries with it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

HOSTS: Final = ("github", "gitlab")
_PACKAGED: Final = Path(__file__).parents[1] / "pipelines"  # where a wheel has them
_SOURCE: Final = Path(__file__).parents[2] / "examples" / "gitops"


def of(host: str) -> Mapping[str, str]:
    """Texts by path below the repository's root, for one of HOSTS."""
    root = (_PACKAGED if _PACKAGED.is_dir() else _SOURCE) / host
    found = sorted(file for file in root.rglob("*") if file.is_file())
    return {file.relative_to(root).as_posix(): file.read_text(encoding="utf-8") for file in found}
