"""The shape of a plan: what remains of it when values of the member's own variables are replaced by their names.

Plans of many members have one shape if they differ only in such values. A person reviews one of them for all.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping

from reconciler.model.change import Change, FieldChange
from reconciler.model.fleet import Member
from reconciler.model.plan import Call, Plan
from reconciler.model.value import Hidden, Json, JsonTemplate, Ref, Secret, Template, Value, canonical

_DIGITS = 12  # of the digest of a shape: people copy it
_SENSITIVE = "(sensitive)"
_WORD = "A-Za-z0-9"


def shape_of(plan: Plan, project: str, member: Member) -> str:
    """The digest of the shape of a plan.

    It covers addresses, actions, paths, old and new values, risks, deliveries and the approvals that are needed. Ids of
    live objects and the content of secrets differ in every account, and are not part of it.
    """
    forms = _Forms(member, plan.names)
    content = {
        "project": project,
        "changes": [
            sorted((forms.change(change) for change in changes), key=lambda form: (form["address"], form["action"]))
            for changes in (plan.changes, plan.additions)
        ],
        "deliveries": sorted(f"{forms.text(call.id)} {text}" for call in plan.calls for text in forms.deliveries(call)),
        "approvals": sorted([item.what, item.kind, item.count, item.is_optional] for item in plan.approvals),
    }
    return hashlib.blake2b(canonical(content), digest_size=_DIGITS // 2).hexdigest()


def digest_changes(plan: Plan) -> dict[str, str]:
    """Address → digest of its change in this account, with ids and digests of secrets. Positions in files, commits and
    approvals are not part of it."""
    return {
        str(change.address): hashlib.blake2b(canonical(_describe(change)), digest_size=8).hexdigest()
        for change in plan.changes
    }


def _describe(change: Change) -> Json:
    return [
        *map(str, (change.action, change.id or "", change.former or "", change.order or "")),
        [[field.path, _plain(field.old), _plain(field.new)] for field in change.fields],
    ]


def _plain(value: Value) -> Json:
    match value:
        case Hidden(text):
            return {"hidden": text}
        case Secret():
            return {"secret": value.source}
        case Ref() | Template():
            return {"reference": str(value)}
        case JsonTemplate(parts):
            return {"json": [_plain(part) for part in parts]}
        case dict():
            return {str(key): _plain(item) for key, item in value.items()}
        case list() | tuple():
            return [_plain(item) for item in value]
    return value


class _Forms:
    """Replaces the values of one member's variables, and the ids of its objects, by their names."""

    def __init__(self, member: Member, names: Mapping[str, str]) -> None:
        named = {"member.name": member.name, **dict(_leaves("var", member.variables))}
        self._numbers = {
            leaf: f"${{{{ {path} }}}}" for path, leaf in named.items() if isinstance(leaf, int | float)
        }  # only whole values: a digit occurs in any text
        texts = {leaf: f"${{{{ {path} }}}}" for path, leaf in named.items() if isinstance(leaf, str) and leaf}
        texts |= {id: f"id of {self._within(name, texts)}" for id, name in names.items()}
        self._texts = texts
        self._pattern = _any_of(texts)

    @staticmethod
    def _within(text: str, texts: Mapping[str, str]) -> str:
        pattern = _any_of(texts)
        return text if pattern is None else pattern.sub(lambda match: texts[match[0]], text)

    def text(self, text: str) -> str:
        """The text with variables where it contains their values between word boundaries."""
        return text if self._pattern is None else self._pattern.sub(lambda match: self._texts[match[0]], text)

    def value(self, value: Value) -> Json:
        match value:
            case Hidden() | Secret():
                return _SENSITIVE
            case Ref() | Template():
                return {"reference": self.text(str(value))}
            case JsonTemplate(parts):
                return {"json": [self.value(part) for part in parts]}
            case str():
                return self.text(value)
            case bool() | None:
                return value
            case int() | float():
                return self._numbers.get(value, value)
            case dict():
                return {self.text(str(key)): self.value(item) for key, item in value.items()}
            case list() | tuple():
                return [self.value(item) for item in value]
        return self.text(str(value))

    def change(self, change: Change) -> dict[str, Json]:
        return {
            "address": self.text(str(change.address)),
            "action": str(change.action),
            "reason": str(change.reason),
            "order": str(change.order or ""),
            "former": self.text(str(change.former or "")),
            "protected": change.protected,
            "risks": sorted(map(str, change.risks)),
            "fields": [self.field(field) for field in change.fields],
            "identity": self.value(dict(change.identity)),
        }

    def field(self, field: FieldChange) -> list[Json]:
        return [field.path, self.value(field.old), self.value(field.new), str(field.changed_by)]

    def deliveries(self, call: Call) -> Iterator[str]:
        for output, delivery in call.deliver.items():
            settings = canonical(self.value(dict(delivery.settings))).decode()
            yield f"{output} {delivery.way} {self.text(delivery.target)} {settings}"


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
    return re.compile(f"(?<![{_WORD}])(?:{choices})(?![{_WORD}])")
