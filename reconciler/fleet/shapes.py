"""The shape of a plan: its content with the values of the member's variables replaced by their names.

Plans of many members have the same shape if they differ only in such values. One of them is reviewed for all.
"""

from __future__ import annotations

import hashlib
import re
import string
from collections.abc import Collection, Iterable, Iterator, Mapping

from reconciler.model.access_change import AccessChange
from reconciler.model.address import Address
from reconciler.model.change import Change, FieldChange
from reconciler.model.fleet import Member
from reconciler.model.plan import Call, Plan
from reconciler.model.problem import Problem
from reconciler.model.value import Hidden, Json, JsonTemplate, Ref, Secret, Template, Value, canonical
from reconciler.planning.judging.rules import Rules, describe_policy, describe_test
from reconciler.planning.judging.strictness import RESOURCE, SETTINGS, Strictness, is_demand

_DIGITS = 12  # of the digest of a shape, which users copy
_WORD = "A-Za-z0-9"
_OBJECT_ID = re.compile(r"[a-z0-9]+_[A-Za-z0-9]{20,}")
_LETTERS = string.ascii_letters + string.digits


def shape_of(
    plan: Plan, project: str, member: Member, rules: Rules, guards: Json = None, literal: Collection[Address] = ()
) -> str:
    """The digest of the shape of a plan.

    member   with the variables as the project resolves them: defaults count
    rules    of the member's project, which judged the plan: if they are loosened, the shape changes
    guards   of the fleet
    literal  addresses as manifests write them: a part of one that resembles the value of a variable is none

    It covers addresses, actions, paths, old and new values, risks, changes of entry points, deliveries, required
    approvals and those that the project grants, and the types and subjects of problems. Ids of live objects and the
    content of secrets differ in every account, and are not part of it.
    """
    forms = _Forms(member, plan.names, frozenset(map(str, literal)))
    content = [
        project,
        *(_sort(forms.change(change) for change in changes) for changes in (plan.changes, plan.additions)),
        _sort(form for call in plan.calls for form in forms.deliveries(call)),
        _sort(forms.access(entry) for entry in plan.access),
        _sort([item.what, item.kind, item.count, item.is_optional, item.granted] for item in plan.approvals),
        _sort(forms.problem(problem) for problem in plan.problems),
        forms.rules(rules, {change.address for change in plan.changes}),
        guards,
    ]
    return hashlib.blake2b(canonical(content), digest_size=_DIGITS // 2).hexdigest()


class _Forms:
    """Replaces the values of one member's variables, and the ids of its objects, by their names.

    A replaced value has a form that no plain value has: a map has a tag, and text with replaced parts is a list of
    parts and names in turn. Text that resembles the form of another value is therefore not confused with it.
    """

    def __init__(self, member: Member, names: Mapping[str, str], literal: Collection[str]) -> None:
        self._literal = literal
        named = {"member.name": member.name, **dict(_leaves("var", member.variables))}
        # Numbers only as whole values: a digit occurs in any text.
        self._numbers = {leaf: path for path, leaf in named.items() if isinstance(leaf, int | float)}
        self._texts: dict[str, Json] = {leaf: path for path, leaf in named.items() if isinstance(leaf, str) and leaf}
        self._pattern = _any_of(self._texts)
        self._texts |= {id: {"id of": self._name(name)} for id, name in names.items()}
        self._pattern = _any_of(self._texts)

    def text(self, text: str) -> Json:
        """The text with variables where it contains their values between word boundaries."""
        if self._pattern is None or len(parts := self._pattern.split(text)) == 1:
            return text
        return {"text": [self._texts[part] if number % 2 else part for number, part in enumerate(parts)]}

    def address(self, address: Address | None) -> Json:
        if address is None:
            return None
        return [address.kind, address.name if str(address) in self._literal else self.text(address.name)]

    def _name(self, name: str) -> Json:
        """The form of `IPPolicy/office` and `IPPolicy "Office"`, with an unchanged kind."""
        kind = name[: len(name) - len(name.lstrip(_LETTERS))]
        if name in self._literal:
            return [kind, name.removeprefix(kind)]
        return [kind, self.text(name.removeprefix(kind))]

    def value(self, value: Value) -> Json:
        match value:
            case Hidden() | Secret():
                return {"sensitive": True}
            case Ref(target, output):
                return {"reference": [self.address(target), output]}
            case Template(parts):
                return {"template": [self.value(part) for part in parts]}
            case JsonTemplate(parts):
                return {"json": [self.value(part) for part in parts]}
            case str():
                return self.text(value)
            case bool() | None:
                return value
            case int() | float():
                return {"number": self._numbers[value]} if value in self._numbers else value
            case Mapping():
                return {"map": _sort([self.text(str(key)), self.value(item)] for key, item in value.items())}
            case list() | tuple():
                return [self.value(item) for item in value]
        return self.text(str(value))

    def change(self, change: Change) -> Json:
        address = change.address
        is_by_id = address.name == change.id and _OBJECT_ID.fullmatch(
            address.name
        )  # not declared: the platform named it
        return [
            [address.kind, {"id": True}] if is_by_id else self.address(address),
            [str(change.action), str(change.reason), str(change.order or ""), change.protected],
            self.address(change.former),
            sorted(map(str, change.risks)),
            [self.field(field) for field in change.fields],
            self.value(change.identity),
        ]

    def field(self, field: FieldChange) -> Json:
        return [field.path, self.value(field.old), self.value(field.new), str(field.changed_by)]

    def access(self, entry: AccessChange) -> Json:
        """What a reviewer sees of an entry point. The witness and the causes follow from it and the changes."""
        texts = entry.entry_point, entry.before, entry.after, *entry.depends_on
        return [str(entry.verdict), entry.is_certain, *map(self.text, texts)]

    def deliveries(self, call: Call) -> Iterator[Json]:
        for output, delivery in call.deliver.items():
            target = [delivery.way, self.text(delivery.target), self.value(delivery.settings), call.overwrites]
            yield [self.address(call.address), str(call.verb), output, target]

    def rules(self, rules: Rules, changed: Collection[Address]) -> Json:
        """The rules that a branch could loosen. Where they apply differs in every member."""
        resources = [(address, found) for address, found in rules.of_resources.items() if address in changed]
        return [
            _pick_demands(rules.settings, SETTINGS),
            {name: describe_policy(rule) for name, rule in rules.policies.items()},
            _sort(self.value(describe_test(test)) for test in rules.tests),
            _sort([self.address(address), _pick_demands(found, RESOURCE)] for address, found in resources),
        ]

    def problem(self, problem: Problem) -> Json:
        """The type and the subject: the text may contain values of the account."""
        kind, _, subject = problem.subject.partition("/")
        own = subject if problem.subject in self._literal else self.text(subject)
        return [problem.code, problem.rule, str(problem.severity), problem.confined, kind, own]


def _pick_demands(values: Mapping[str, Json], table: Mapping[str, Strictness | None]) -> Json:
    return {name: value for name, value in values.items() if is_demand(table[name])}


def _sort(forms: Iterable[Json]) -> list[Json]:
    return sorted(forms, key=canonical)


def _leaves(path: str, value: Json) -> Iterator[tuple[str, Json]]:
    if isinstance(value, Mapping):
        for key, item in value.items():
            yield from _leaves(f"{path}.{key}", item)
    elif isinstance(value, list):
        for number, item in enumerate(value):
            yield from _leaves(f"{path}[{number}]", item)
    elif not isinstance(value, bool):
        yield path, value


def _any_of(texts: Mapping[str, str]) -> re.Pattern[str] | None:
    """Matches any of the texts as whole words, the longest first."""
    if not texts:
        return None
    choices = "|".join(re.escape(text) for text in sorted(texts, key=lambda text: (-len(text), text)))
    return re.compile(f"(?<![{_WORD}])({choices})(?![{_WORD}])")
