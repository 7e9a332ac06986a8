"""Expands components and `for_each`, merges defaults and an environment's patches, and separates inline children.

Runs before envelopes are read. A document to which none of these applies is returned unchanged.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from msgspec.structs import replace

from reconciler.languages.yaml.reader import Document
from reconciler.model.address import Address
from reconciler.model.problem import Finding, Position, Problem
from reconciler.model.suggestions import did_you_mean
from reconciler.model.value import PENDING, Json
from reconciler.project.documents import phrases, validation
from reconciler.project.documents.budget import Budget, OverBudget
from reconciler.project.documents.merge import Layer, MergedDocument, Role, layers_of, merge, own_layer, scope_of
from reconciler.project.documents.scope import Scope, name_use
from reconciler.project.manifests import children, components, for_each
from reconciler.project.manifests.components import Components
from reconciler.project.manifests.for_each import KEY
from reconciler.project.settings.config import Config
from reconciler.project.settings.variables import Setting

WHEN: Final = "when"
_COMPOSED: Final = frozenset((KEY, WHEN, components.KEY))  # keys that an envelope does not have


class Composition:
    """Composes documents one after the other.

    left_out   resources that the environment or `when` removes, with positions
    scopes     the uses of components that would declare these
    listed     kinds of children that a manifest declares inline, by the address of the parent
    """

    def __init__(self, config: Config, settings: Mapping[str, Setting], budget: Budget) -> None:
        self._settings = settings
        self._defaults = config.defaults
        self._environment = config.environment
        self._patches = config.environment.patches if config.environment else {}
        self._budget = budget
        self._components = Components(config, settings, budget)
        self.left_out: dict[Address, Position] = {}
        self.scopes: dict[Address, Scope] = {}
        self.listed: dict[Address, tuple[str, ...]] = {}
        self._complete = True  # False if a `for_each` could not be expanded, or the budget is spent

    @property
    def complete(self) -> bool:
        """Whether every document was composed."""
        return self._complete and self._components.complete

    @property
    def component_texts(self) -> Mapping[str, bytes]:
        """The files of components that were read, by path."""
        return self._components.texts

    def documents(self, document: Document, problems: list[Problem]) -> Iterable[Document]:
        value = document.value
        if not isinstance(value, dict):
            return (document,)
        is_composed = not _COMPOSED.isdisjoint(value) or self._defaults or self._patches
        if not is_composed and not children.may_have(value):
            return (document,)
        try:
            composed = self._compose(document, problems) if is_composed else (document,)
            return [one for whole in composed for one in self._separate(whole, problems)]
        except OverBudget as over:
            self._complete = False
            if over.is_first:
                problems.append(Problem(str(over), over.remedy, "", document.places.start, code=over.code))
            return ()

    def _compose(self, document: Document, problems: list[Problem]) -> Iterator[Document]:
        for instance in self._instances(document, problems):
            wanted = self._select(instance, problems)
            if wanted is None:
                continue
            if components.KEY not in wanted.value:
                yield from self._merge_layers(wanted)
                continue
            for part in self._components.expand(wanted, problems):
                yield from self._compose(part, problems)

    def _instances(self, document: Document, problems: list[Problem]) -> Sequence[Document]:
        if KEY not in document.value:
            return (document,)
        instances, findings = for_each.expand(document, self._settings, self._budget)
        self._complete = self._complete and not findings and instances is not None
        problems += [_to_problem(finding, document) for finding in findings]
        return instances or ()

    def _select(self, document: Document, problems: list[Problem]) -> Document | None:
        """The document without `when`; None if that is false, or wrong."""
        if WHEN not in document.value:
            return document
        is_wanted = self._is_wanted(document.value[WHEN])
        if is_wanted is True:
            whole = own_layer(document)
            own, *others = (
                replace(layer, value={key: item for key, item in layer.value.items() if key != WHEN})
                for layer in (layers_of(document.places) if whole.is_entry else (replace(whole, value=document.value),))
            )
            return merge([own, *others], own, sound=document.sound)
        if is_wanted is False:
            self._leave_out(document, own_layer(document).template((WHEN,)).position)
            return None
        self._complete = False
        if isinstance(is_wanted, Finding):
            problems.append(_to_problem(is_wanted, document))
        return None

    def _is_wanted(self, value: Json) -> bool | Finding | None:
        """Whether `when` holds; None if it is a variable without a value."""
        if isinstance(value, str) and (variable := for_each.VARIABLE.fullmatch(value.strip())):
            if (setting := self._settings.get(variable[1])) is None:
                remedy = did_you_mean(variable[1], self._settings) or "define it under variables: in reconciler.yaml"
                return Finding((WHEN,), f"unknown variable {variable[1]}", remedy, code="unknown-variable")
            value = setting.value
            if value is None or value is PENDING:
                return None
        if isinstance(value, bool):
            return value
        text = f"expected true or false, found {phrases.describe_found(value)}"
        return Finding(
            (WHEN,), text, "write ${{ var.NAME }}, ${{ each.value.NAME }} or ${{ input.NAME }}", code="wrong-type"
        )

    def _leave_out(self, document: Document, where: Position) -> None:
        own = Address(str(document.value.get("kind")), str(document.value.get("name")))
        addresses = (own, *children.list_addresses(document.value))
        self.left_out |= dict.fromkeys(addresses, where)
        if (scope := scope_of(document.places)) is not None:
            self.scopes |= dict.fromkeys(addresses, scope)

    def _separate(self, document: Document, problems: list[Problem]) -> Iterator[Document]:
        """The document without its inline children, and each of these."""
        if not children.may_have(document.value):
            yield document
            return
        family = children.separate(document, self._budget)
        self._complete = self._complete and not family.findings
        address = Address(str(document.value.get("kind")), str(document.value.get("name")))
        problems += [_to_problem(finding, document) for finding in family.findings]
        if family.kinds:
            self.listed[address] = family.kinds
        yield family.parent
        for child in family.children:
            if (wanted := self._select(child, problems)) is not None:
                yield from self._merge_layers(wanted)

    def _merge_layers(self, document: Document) -> tuple[Document, ...]:
        """Merges defaults, document and patch. Returns nothing if the environment leaves the resource out."""
        address = Address(str(document.value.get("kind")), str(document.value.get("name")))
        below, patch = self._defaults.get(address.kind), self._patches.get(address)
        if below is None and patch is None:
            return (document,)
        if patch is not None and patch.value is None and self._environment is not None:
            self._leave_out(document, self._environment.place(address))
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


def _to_problem(finding: Finding, document: Document) -> Problem:
    value = document.value
    subject = f"{value.get('kind', value.get(components.KEY))}/{value.get('name')}"
    return name_use(validation.to_problem(finding, document.places, subject), scope_of(document.places))


def _is_present(value: Mapping[str, Any]) -> bool:
    return value.get("ensure", "present") not in ("absent", "forgotten")
