"""The codes of problems, as the page `docs/errors.md` and on a terminal."""

from __future__ import annotations

from collections.abc import Iterator

from reconciler.model.codes import AREAS, CODES, Code
from reconciler.rendering import terminal_text

_HEAD = """\
# Errors and warnings

Every problem has a code, which stays the same in later releases while its text may change. Plans in JSON and the log
with `--log-format json` have it as `code`, with the names and numbers of the text as `values`; SARIF has it as
`ruleId`, GitHub and GitLab in their annotations. `reconciler explain CODE` prints its entry of this page.

`validate --strict` fails on the warnings that are marked *strict*. Failures of the platform's API, of the store and of
the command line have no code of this list.
"""


def page() -> str:
    """The whole page."""
    sections = [_HEAD, *(_section(title) for title in AREAS)]
    return "\n".join(sections)


def _section(title: str) -> str:
    entries = "\n".join(
        f"### {code}\n\n*{severity(entry)}* · {entry.meaning}\n\n- Cause: {entry.cause}\n- Remedy: {entry.remedy}\n"
        for code, entry in sorted(AREAS[title].items())
    )
    return f"## {title}\n\n{entries}"


def text(code: str, width: int) -> str:
    """The entry of a code as lines of this width."""
    entry = CODES[code]
    return "\n".join(_lines(f"{code} ({severity(entry)})", entry, width))


def _lines(head: str, entry: Code, width: int) -> Iterator[str]:
    yield from terminal_text.wrap(f"{head}: {entry.meaning}", width)
    for label, text in (("Cause", entry.cause), ("Remedy", entry.remedy)):
        yield ""
        yield from terminal_text.wrap(f"{label}: {text}", width)


def severity(entry: Code) -> str:
    """`error or warning, strict`"""
    return " or ".join(map(str, entry.severities)) + (", strict" if entry.is_strict else "")
