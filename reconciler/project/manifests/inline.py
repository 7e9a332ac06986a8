"""Moves the manifests of children into those of their parents, as text and with their comments (`fmt --inline`).

Works on formatted texts, in which every document that is no map in braces has one layout.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from reconciler import kinds
from reconciler.languages.yaml import reader as yaml
from reconciler.languages.yaml.reader import Document
from reconciler.model.address import NAME, Address
from reconciler.model.kind import Kind
from reconciler.model.problem import Position, Problem, Severity
from reconciler.model.value import OMITTED
from reconciler.project.documents import entries
from reconciler.project.yaml import emit, format, patch
from reconciler.project.yaml.patch import Unpatchable

_ENTRY: Final = emit.INDENT
_INSIDE: Final = emit.INDENT * 2


class _Piece(Struct):
    """One document of a file; without text if it was moved."""

    file: str
    text: str
    document: Document

    @property
    def value(self) -> dict[str, Any]:
        return self.document.value if isinstance(self.document.value, dict) else {}

    @property
    def address(self) -> Address:
        return Address(str(self.value.get("kind")), str(self.value.get("name")))

    def lay_out(self) -> list[tuple[str, list[str], list[str]]]:
        """Each key with the lines of comments above it, and its own. Raises Unpatchable for a map in braces."""
        lines = [line for line in self.text.splitlines() if not format.is_modeline(line)]
        places = yaml.read("\n".join(lines).encode(), "").documents[0].places
        begins = [(places.key((key,)), key) for key in self.value]
        if any(where.column != 1 for where, _ in begins):
            raise Unpatchable(
                "a manifest in braces cannot be changed; run `reconciler fmt` after writing it as a block"
            )
        starts = [format.first_comment(lines, where.line - 1) for where, _ in begins]
        starts[0] = 0  # what stands above the first key is about the whole document
        ends = [*starts[1:], len(lines)]
        return [
            (key, lines[start : where.line - 1], lines[where.line - 1 : end])
            for (where, key), start, end in zip(begins, starts, ends, strict=True)
        ]


def move_inline(texts: Mapping[str, str], declared: Collection[Address]) -> tuple[dict[str, str], list[Problem]]:
    """The texts with each child in the manifest of its parent, and the children that stay, with the reason.

    declared  by the project. Suggested names are none of these

    The positions of the problems are unknown until the texts are formatted: see `locate`.
    """
    pieces = [
        _Piece(file, text, yaml.read(text.encode(), file).documents[0])
        for file, whole in texts.items()
        for text in format.split_documents(whole, file)
    ]
    parents = {piece.address: piece for piece in pieces if "for_each" not in piece.value}
    problems: list[Problem] = []
    taken = {*declared}
    for piece in pieces:
        child = kinds.find(piece.address.kind) if piece.address.kind.isidentifier() else None
        parent = _find_parent(piece, child)
        if child is None or parent is None or (parent not in declared):
            continue
        try:
            _move(piece, child, parent, parents, taken)
        except Unpatchable as why:
            text, _, remedy = str(why).partition("; ")
            text = f"cannot be declared in the manifest of {parent}: {text}"
            problems.append(Problem(text, remedy, str(piece.address), None, Severity.NOTE, code="cannot-format"))
    return {file: _join(piece.text for piece in pieces if piece.file == file) for file in texts}, problems


def locate(problems: Iterable[Problem], texts: Mapping[str, str]) -> tuple[Problem, ...]:
    """The problems, each with the position of its manifest in these texts."""
    positions: dict[str, Position] = {}
    for file, text in texts.items():
        for document in yaml.read(text.encode(), file).documents:
            positions.setdefault(str(_Piece(file, "", document).address), document.places.start)
    located = [replace(problem, position=positions[problem.subject]) for problem in problems]
    return tuple(sorted(located, key=lambda problem: positions[problem.subject]))


def _join(pieces: Iterator[str]) -> str:
    return "---\n".join(piece for piece in pieces if piece.strip())


def _find_parent(piece: _Piece, child: Kind | None) -> Address | None:
    """The parent that the manifest of a child names with a reference."""
    spec = piece.value.get("spec")
    if child is None or child.part_of is None or not child.part_of.inline or not isinstance(spec, dict):
        return None
    match spec.get(child.part_of.field):
        case {"ref": str(text)} if text.startswith(f"{child.part_of.kind}/"):
            return Address(child.part_of.kind, text.partition("/")[2])
    return None


def _move(piece: _Piece, child: Kind, above: Address, parents: Mapping[Address, _Piece], taken: set[Address]) -> None:
    """Moves the document of a child into that of its parent. Raises Unpatchable, with a remedy behind a semicolon."""
    assert child.part_of is not None
    if "for_each" in piece.value:
        raise Unpatchable("it has for_each, which an entry cannot have; leave it as it is")
    parent = parents.get(above)
    if parent is None:
        name = child.part_of.inline
        raise Unpatchable(
            f"for_each declares the parent, and {name} there would be of every item; leave it as it is, or write "
            f"`{name}: ${{{{ each.value.{name} }}}}` there and give every item a map {name}"
        )
    key = piece.address.name.removeprefix(f"{above.name}-")
    if not key or key == piece.address.name:
        renamed = _suggest(child, piece.address.name, above, taken)
        taken.add(renamed)
        command = f"reconciler rename {shlex.quote(str(piece.address))} {shlex.quote(str(renamed))}"
        raise Unpatchable(f"its name does not begin with {above.name}-; `{command}` renames it, and keeps the object")
    lines = _to_entry(piece, key, child.part_of.field)
    _insert(parent, child.part_of.inline, lines)
    piece.text = ""


def _suggest(child: Kind, name: str, above: Address, taken: Collection[Address]) -> Address:
    """A name below that of the parent: without the words that both names share, and the word of the kind."""
    words, shared = name.split("-"), above.name.split("-")
    while words and shared and words[0] == shared[0]:
        words, shared = words[1:], shared[1:]
    while words and shared and words[-1] == shared[-1]:
        words, shared = words[:-1], shared[:-1]
    of_kind = re.findall("[A-Z][a-z]*", child.name)[-1].lower()
    shorter = words[:-1] if words[1:] and words[-1] == of_kind else words
    keys = ("-".join(shorter), "-".join(words) or of_kind, name, *(f"{name}-{number}" for number in range(2, 100)))
    found = (Address(child.name, f"{above.name}-{key}") for key in keys if NAME.fullmatch(key))
    return next(address for address in found if address not in taken)


def _to_entry(piece: _Piece, key: str, link: str) -> list[str]:
    """The lines of the entry that a document becomes, with its comments."""
    comments: list[str] = []
    beside: list[str] = []
    spec: list[str] = []
    for name, above, own in piece.lay_out():
        if name in entries.KEYS:
            beside += [*above, *own]
        else:
            comments += above
            if name != "spec":
                comments += _comments(own)
            else:
                spec = _to_fields(piece, own, link, comments)
    head = f"{_ENTRY}{emit.scalar(key)}:"
    if len(spec) == 1 and spec[0].startswith("{"):
        if not beside:
            body = [f"{head} {spec[0]}"]
        else:
            comments += _comments(spec)
            values = {name: item for name, item in piece.value["spec"].items() if name != link}
            body = [head, *_indent(beside), *emit.block(values, _INSIDE)]
    else:
        body = [head, *_indent(beside), *(f"{_ENTRY}{line}" if line else "" for line in spec)]
        body = body if len(body) > 1 else [f"{head} {{}}"]
    return [*(f"{_ENTRY}{line.strip()}" for line in comments if line.strip()), *body]


def _to_fields(piece: _Piece, own: list[str], link: str, comments: list[str]) -> list[str]:
    """The lines below `spec` without the reference to the parent; one line in braces if they are written so."""
    if not own[0].removeprefix("spec:").partition("#")[0].strip():
        comments += _comments(own[:1])
        return _drop_link(own, link, comments)
    text = patch.patch_text("\n".join(own) + "\n", 1, ("spec", link), OMITTED).rstrip("\n")
    if "\n" not in text:
        return [text.removeprefix("spec:").strip()]
    if _comments(own):
        raise Unpatchable("its spec is in braces and has comments; write it as a block")
    return [emit.flow({name: item for name, item in piece.value["spec"].items() if name != link})]


def _drop_link(own: list[str], link: str, comments: list[str]) -> list[str]:
    """The lines of a block below `spec:` without those of one key, whose comments are kept."""
    places = yaml.read("\n".join(own).encode(), "").documents[0].places
    names = [path[1] for path in places if len(path) == 2]
    lines = [places.key(("spec", name)).line - 1 for name in names]
    at = names.index(link)
    start, end = lines[at], lines[at + 1] if at + 1 < len(lines) else len(own)
    while end - 1 > start and own[end - 1].strip().startswith("#") and at + 1 < len(lines):
        end -= 1  # a comment above the next key belongs to it
    comments += _comments(own[start:end])
    return [*own[1:start], *own[end:]]


def _insert(parent: _Piece, name: str, lines: Sequence[str]) -> None:
    """Adds an entry to the map of the parent, last."""
    result: list[str] = []
    is_added = False
    for key, above, own in parent.lay_out():
        result += above
        while own and not own[-1].strip():
            own = own[:-1]
        if key == name:
            if own[0].removeprefix(f"{name}:").partition("#")[0].strip():
                raise Unpatchable(f"{name} of the parent is written in braces; write it as a block")
            own, is_added = [*own, *lines], True
        result += own
    result += [] if is_added else [f"{name}:", *lines]
    modelines = [line for line in parent.text.splitlines() if format.is_modeline(line)]
    parent.text = "\n".join([*modelines, *result]) + "\n"
    reading = yaml.read(parent.text.encode(), parent.file)
    if reading.problems or len(reading.documents) != 1:
        raise Unpatchable("the result would not be valid YAML")
    parent.document = reading.documents[0]


def _indent(lines: Sequence[str]) -> list[str]:
    return [f"{_INSIDE}{line}" if line else "" for line in lines]


def _comments(lines: Sequence[str]) -> list[str]:
    return [comment for line in lines for comment in format.comments_of(line)]
