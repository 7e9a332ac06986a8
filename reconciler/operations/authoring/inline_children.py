"""Moves the manifests of children into those of their parents, and checks that the project declares the same."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from reconciler.model.manifest import Declaration
from reconciler.model.problem import Problem, Rejected
from reconciler.operations.authoring import project_texts
from reconciler.operations.authoring.project_texts import Declared
from reconciler.operations.errors import InvalidProject, UnusableEdit
from reconciler.operations.opening.source import ProjectSource
from reconciler.project.manifests import inline
from reconciler.project.yaml import format


class InlinedProject(Struct, frozen=True):
    """The formatted manifests by path, with children in those of their parents; empty if nothing is left in a file.

    problems  children that stay in manifests of their own, with the reason; the positions are those after the edit
    unmoved   the same, with the positions before the edit
    """

    texts: Mapping[str, str]
    problems: tuple[Problem, ...]
    unmoved: tuple[Problem, ...]


def inline_children(source: ProjectSource) -> InlinedProject:
    """Changes the manifests in memory. Writes nothing.

    Raises InvalidProject, or UnusableEdit if the result would declare anything else, or lose a comment.
    """
    texts = project_texts.read(source)
    before = project_texts.load(source, texts)
    declared = {address for declarations in before.values() for address in declarations}
    try:
        manifests = {path: text for path, text in texts.items() if project_texts.has_manifests(path, text)}
        formatted = {path: format.format_text(text, path) for path, text in manifests.items()}
        moved, problems = inline.move_inline(formatted, declared)
        moved = {path: format.format_text(text, path) if text else "" for path, text in moved.items()}
    except Rejected as rejected:
        raise InvalidProject(rejected.problems) from rejected
    if _list_comments(formatted) != _list_comments(moved):
        raise UnusableEdit("a comment would be lost; move comments to lines of their own, above a key")
    _check(source, {**texts, **moved}, before)
    return InlinedProject(moved, inline.locate(problems, moved), inline.locate(problems, manifests))


def _list_comments(texts: Mapping[str, str]) -> list[str]:
    """The comments of all files, other than the lines that name a schema."""
    found = [comment for text in texts.values() for comment in format.comments_of(text)]
    return sorted(comment for comment in found if not format.is_modeline(comment))


def _check(source: ProjectSource, texts: Mapping[str, str], before: Mapping[str | None, Declared]) -> None:
    """Raises UnusableEdit if the texts declare anything else."""
    try:
        after = project_texts.load(source, texts)
    except InvalidProject as invalid:
        raise UnusableEdit(
            "with inline children the manifests would be invalid", *(str(problem) for problem in invalid.problems[:5])
        ) from None
    for name, declarations in before.items():
        found = after.get(name, {})
        for address in sorted({*declarations, *found}):
            old, new = declarations.get(address), found.get(address)
            if old is None or new is None or not _is_same(old, new):
                where = f" in the environment {name}" if name else ""
                raise UnusableEdit(f"the manifests would declare {address} otherwise{where}; write it inline by hand")


def _is_same(old: Declaration, new: Declaration) -> bool:
    """Whether two declarations say the same. Those of inline children also have the former names of the parent."""
    same = all(getattr(old, name) == getattr(new, name) for name in ("spec", "id", "ensure", "lifecycle", "rotate"))
    return same and {*old.moved} <= {*new.moved} and old.deliver.keys() == new.deliver.keys()
