"""Decides what remains of a project with invalid manifests: which declarations are skipped, and what is unknown.

An error of one declaration skips it. An error of a file leaves open what the file declares. Any other error, such as
one of the settings, leaves nothing (docs/invalid-manifests.md).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from msgspec.structs import replace

from reconciler.model.address import Address
from reconciler.model.manifest import Unread
from reconciler.model.problem import Problem, Rejected


def find_unread(
    problems: Sequence[Problem], declared: Collection[Address], files: Collection[str], *, is_complete: bool
) -> Unread | None:
    """The addresses of invalid declarations, and whether there may be others; None without errors.

    declared     every address that a manifest has, whether its declaration is valid or not
    files        of manifests, and those that they include
    is_complete  every document was read, and has an address

    Raises Rejected with all problems if an error concerns more than some declarations.
    """
    addresses: set[Address] = set()
    has_unknown = not is_complete
    for problem in problems:
        if not problem.is_error:
            continue
        named = set(_find_addresses(problem, declared))
        is_in_manifest = problem.position is not None and problem.position.file in files
        if not named and not is_in_manifest:
            raise Rejected(problems)
        addresses |= named
        has_unknown = has_unknown or not named
    return Unread(frozenset(addresses), has_unknown) if addresses or has_unknown else None


def confine(problems: Sequence[Problem]) -> tuple[Problem, ...]:
    """The problems, each error of which concerns only what is skipped because of it."""
    return tuple(replace(problem, confined=True) if problem.is_error else problem for problem in problems)


def _find_addresses(problem: Problem, declared: Collection[Address]) -> Iterator[Address]:
    """The declarations that a problem names: its subject, and all others of a conflict."""
    others = problem.values.get("addresses")
    texts = [problem.subject, problem.values.get("first"), *(others if isinstance(others, list) else ())]
    for text in texts:
        if isinstance(text, str):
            yield from find_in_subject(text, declared)


def find_in_subject(text: str, declared: Collection[Address]) -> Iterator[Address]:
    """Each declared address that begins a subject such as `Kind/name.field`.

    Names may contain dots: if `name.field` is declared too, nothing tells which of the two is wrong.
    """
    kind, slash, name = text.partition("/")
    while slash and name:
        if (address := Address(kind, name)) in declared:
            yield address
        name = name.rpartition(".")[0]
