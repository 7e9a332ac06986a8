"""Looks up references among the declared resources, and explains those that cannot be resolved.

A name may contain dots, so in `Kind/a.b.c` the longest declared name wins: `a.b.c`, then `a.b` with output `c`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Final

from msgspec import Struct, field

from reconciler import kinds
from reconciler.model.address import Address
from reconciler.model.kind import Home
from reconciler.model.manifest import Ensure, Path
from reconciler.model.problem import Finding, Position, cut
from reconciler.model.suggestions import did_you_mean, with_suggestion
from reconciler.model.value import Json, Ref
from reconciler.project.documents import phrases, terraform
from reconciler.project.documents.scope import Scope

_EACH: Final = re.compile(r"each\b")
_INPUT: Final = re.compile(r"(input|component)\.")


class Unresolved(Exception):
    """A reference or expression that cannot be resolved, with the reason and a remedy."""

    def __init__(self, text: str, remedy: str = "", *, code: str, values: Mapping[str, Json] | None = None) -> None:
        super().__init__(text)
        self.remedy = remedy
        self.code = code
        self.values = values or {}


class Declared(Struct):
    """The addresses that references can name."""

    ensures: dict[Address, Ensure] = field(default_factory=dict)
    known: dict[Address, Address] = field(default_factory=dict)  # interns addresses: references share one object
    complete: bool = True  # False if a file could not be read: an unknown target may be declared in it
    left_out: dict[Address, Position] = field(
        default_factory=dict
    )  # by the environment or `when`, with the position of its patch or `when`
    scopes: dict[Address, Scope] = field(default_factory=dict)  # of those that a component declares

    def add(self, address: Address, ensure: Ensure, scope: Scope | None = None) -> None:
        """Adds an address. Of two equal ones the first counts."""
        if self.known.setdefault(address, address) is address:
            self.ensures[address] = ensure
            if scope is not None:
                self.scopes[address] = scope

    def is_in(self, scope: Scope, address: Address) -> bool:
        """Whether a use of a component declares the address, itself or by another use within."""
        found = self.scopes.get(address)
        return found is not None and any(around is scope for around in found.chain())


class References:
    """Looks up references; the result for each text is cached."""

    def __init__(self, declared: Declared) -> None:
        self._declared = declared
        self._known: dict[str, Ref | Unresolved] = {}

    def find(
        self, text: str, allowed: Sequence[str], ensure: Ensure = Ensure.PRESENT, scope: Scope | None = None
    ) -> Ref:
        """Returns the reference that a text names.

        `allowed` are the kinds whose ids the field takes; empty for references within text. `ensure` is that of the
        resource that refers: one that will be deleted or forgotten may refer to what is absent. A text of a component
        names the component's own resources first: those of this `scope`. Raises Unresolved.
        """
        if scope is not None:
            text = self._qualify(text, scope)
        ref = self._known.get(text)
        if ref is None:
            try:
                ref = self._look_up(text)
            except Unresolved as wrong:
                ref = wrong
            self._known[text] = ref
        if isinstance(ref, Unresolved):
            raise Unresolved(str(ref), ref.remedy, code=ref.code, values=ref.values)
        if ensure is Ensure.PRESENT and self._declared.ensures.get(ref.target) is Ensure.ABSENT:
            raise Unresolved(
                f"refers to {ref.target}, which is declared absent", "remove it", code="reference-to-absent"
            )
        if allowed:
            if ref.target.kind not in allowed:
                raise Unresolved(
                    f"refers to the kind {ref.target.kind}; this field takes a "
                    f"reference to {phrases.join_words(allowed)}",
                    f"write {{ref: {allowed[0]}/NAME}}",
                    code="invalid-reference",
                )
            if ref.output != "id":
                raise Unresolved(
                    f"refers to the output {ref.output} of {ref.target}; this field takes an id",
                    f"write {ref.target}",
                    code="invalid-reference",
                )
        elif kinds.get(ref.target.kind).home is Home.FILE:
            raise Unresolved(
                f"refers to {ref.target}, which is rendered to a file and has no outputs",
                "write the value itself",
                code="invalid-reference",
            )
        return ref

    def _qualify(self, text: str, scope: Scope) -> str:
        """The reference with the whole name of a resource, if the use of the component has it."""
        kind, _, rest = text.partition("/")
        name = rest
        while name:
            if self._declared.is_in(scope, Address(kind, scope.qualify(name))):
                return f"{kind}/{scope.qualify(rest)}"
            name = name.rpartition(".")[0]
        return text

    def _look_up(self, text: str) -> Ref:
        kind_name, slash, rest = text.partition("/")
        if _INPUT.match(text):
            raise Unresolved(
                f"{text!r} is only available in a component",
                "write var.NAME for a variable of the project",
                code="invalid-expression",
            )
        if _EACH.match(text):
            raise Unresolved(
                f"{text!r} is only available in a manifest with for_each",
                "add for_each beside spec",
                code="invalid-expression",
            )
        if not slash or not rest:
            remedy = terraform.find_bare(text) or "write Kind/name or Kind/name.output"
            raise Unresolved(f"{text!r} is not a reference", remedy, code="invalid-reference")
        kind = kinds.find(kind_name) if kind_name.isidentifier() else None
        if kind is None:
            raise Unresolved(
                f"refers to the unknown kind {cut(kind_name)}", suggest_kind(kind_name), code="unknown-kind"
            )
        name, output = rest, ""
        while (address := self._declared.known.get(Address(kind_name, name))) is None:
            name, dot, last = name.rpartition(".")
            if not dot:
                return self._unknown(kind_name, rest)
            output = f"{last}.{output}" if output else last
        if output and output == kind.one_time:
            raise Unresolved(
                f"{address}.{output} is a one-time secret and cannot be referenced",
                "write the secret to a file with `deliver` on that resource",
                code="one-time-secret-reference",
            )
        if output and output not in kind.outputs:
            own = " (a field of its manifest: write the value itself)" if output in kind.by_name else ""
            known_outputs = [output for output in kind.outputs if output != kind.one_time]
            remedy = did_you_mean(output, known_outputs) or f"use {phrases.join_words(known_outputs)}"
            values = with_suggestion("output", output, known_outputs)
            raise Unresolved(f"{kind_name} has no output {output}{own}", remedy, code="unknown-output", values=values)
        return Ref(address, output or "id")

    def _unknown(self, kind_name: str, rest: str) -> Ref:
        if not self._declared.complete:
            return Ref(Address(kind_name, rest))
        if (where := self._declared.left_out.get(Address(kind_name, rest))) is not None:
            raise Unresolved(
                f"refers to {kind_name}/{rest}, which {where} leaves out",
                "leave this resource out there too, or remove the reference",
                code="reference-to-absent",
            )
        names = [ensure.name for ensure in self._declared.ensures if ensure.kind == kind_name]
        close = did_you_mean(rest, names) or did_you_mean(rest.rpartition(".")[0] or rest, names)
        remedy = (
            close.replace("did you mean ", f"did you mean {kind_name}/")
            or "declare it, or write the id of an existing object"
        )
        text, values = f"refers to {kind_name}/{rest}, which is not declared", {"reference": f"{kind_name}/{rest}"}
        raise Unresolved(text, remedy, code="unknown-reference", values=values)


def report_unknown_kind(path: Path, name: str) -> Finding:
    """The finding for an unknown kind."""
    values = _values_of_unknown_kind(name)
    return Finding(path, f"unknown kind {name!r}", suggest_kind(name), code="unknown-kind", values=values)


@lru_cache(maxsize=64)  # one misspelled kind often occurs many times
def _values_of_unknown_kind(name: str) -> Mapping[str, Json]:
    if name in kinds.RENAMED:
        return {"kind": name, "suggestion": kinds.RENAMED[name]}
    return with_suggestion("kind", name, [kind.name for kind in kinds.declarable()])


@lru_cache(maxsize=64)
def suggest_kind(name: str) -> str:
    """The remedy for an unknown kind."""
    if name in kinds.RENAMED:
        return f"write {kinds.RENAMED[name]}, the kind of the same objects"
    return did_you_mean(name, [kind.name for kind in kinds.declarable()]) or "`reconciler kinds` lists all kinds"
