"""Expands `for_each`, merges a kind's defaults and an environment's patches into documents, and separates children.

Runs before envelopes are read. A document to which none of these applies is returned unchanged.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from reconciler.languages.yaml.reader import Document
from reconciler.model.address import Address
from reconciler.model.problem import Position, Problem
from reconciler.model.suggestions import did_you_mean
from reconciler.project.documents import validation
from reconciler.project.documents.budget import Budget, OverBudget
from reconciler.project.documents.merge import Layer, MergedDocument, Role, merge
from reconciler.project.manifests import children, for_each
from reconciler.project.manifests.for_each import KEY
from reconciler.project.settings.config import Config
from reconciler.project.settings.variables import Setting


class Composition:
    """Composes documents one after the other.

    left_out  resources that the environment removes, with positions
    listed    kinds of children that a manifest declares inline, by the address of the parent
    """

    def __init__(self, config: Config, settings: Mapping[str, Setting], budget: Budget) -> None:
        self._settings = settings
        self._defaults = config.defaults
        self._environment = config.environment
        self._patches = config.environment.patches if config.environment else {}
        self._budget = budget
        self.left_out: dict[Address, Position] = {}
        self.listed: dict[Address, tuple[str, ...]] = {}
        self.complete = True  # False if a `for_each` could not be expanded, or the budget is spent

    def documents(self, document: Document, problems: list[Problem]) -> Iterable[Document]:
        value = document.value
        if not isinstance(value, dict):
            return (document,)
        is_composed = KEY in value or self._defaults or self._patches
        if not is_composed and not children.may_have(value):
            return (document,)
        try:
            composed = self._compose(document, problems) if is_composed else (document,)
            return [one for whole in composed for one in self._separate(whole, problems)]
        except OverBudget as over:
            self.complete = False
            if over.is_first:
                problems.append(Problem(str(over), over.remedy, "", document.places.start, code=over.code))
            return ()

    def _compose(self, document: Document, problems: list[Problem]) -> Iterable[Document]:
        value = document.value
        if KEY not in value:
            return self._merge_layers(document)
        instances, findings = for_each.expand(document, self._settings, self._budget)
        self.complete = self.complete and not findings and instances is not None
        subject = f"{value.get('kind')}/{value.get('name')}"
        problems += [validation.to_problem(finding, document.places, subject) for finding in findings]
        return [layered for instance in instances or () for layered in self._merge_layers(instance)]

    def _separate(self, document: Document, problems: list[Problem]) -> Iterator[Document]:
        """The document without its inline children, and each of these."""
        if not children.may_have(document.value):
            yield document
            return
        family = children.separate(document)
        self.complete = self.complete and not family.findings
        address = Address(str(document.value.get("kind")), str(document.value.get("name")))
        problems += [validation.to_problem(finding, document.places, str(address)) for finding in family.findings]
        if family.kinds:
            self.listed[address] = family.kinds
        yield family.parent
        for child in family.children:
            yield from self._merge_layers(child)

    def _merge_layers(self, document: Document) -> tuple[Document, ...]:
        """Merges defaults, document and patch. Returns nothing if the environment leaves the resource out."""
        address = Address(str(document.value.get("kind")), str(document.value.get("name")))
        below, patch = self._defaults.get(address.kind), self._patches.get(address)
        if below is None and patch is None:
            return (document,)
        if patch is not None and patch.value is None and self._environment is not None:
            place = self._environment.place(address)
            self.left_out |= dict.fromkeys((address, *children.list_addresses(document.value)), place)
            return ()
        own, *others = _own_layers(document)
        if below is not None and not _is_present(document.value):
            below = None  # `ensure: absent` and `forgotten` take no defaults
        for layer in filter(None, (below, patch)):
            self._budget.charge(layer.value)
        layers = [layer for layer in (below, own, *others, patch) if layer is not None]
        return (merge(layers, own, sound=document.sound),)

    def find_undeclared_patches(self, declared: Iterable[Address]) -> Iterator[Problem]:
        """Reports patches of the environment for resources that no manifest declares."""
        if self._environment is None:
            return
        known = {*declared, *self.left_out}
        for address in self._patches:
            if address not in known:
                names = [str(other) for other in known if other.kind == address.kind] or [str(other) for other in known]
                remedy = did_you_mean(str(address), names) or "declare it in a manifest, or remove this patch"
                where = self._environment.place(address)
                yield Problem("not declared in any manifest", remedy, str(address), where, code="undeclared-resource")


def _own_layers(document: Document) -> Sequence[Layer]:
    """The layers of a document before defaults and its patch: the first has its name. Several only of a child."""
    if isinstance(document.places, MergedDocument):
        return document.places.layers
    return (Layer(Role.MANIFEST, document.value, document.places),)


def _is_present(value: Mapping[str, Any]) -> bool:
    return value.get("ensure", "present") not in ("absent", "forgotten")
