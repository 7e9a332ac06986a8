"""Turns a call of the plan into a request body, an owner record and an intent, with references resolved.

Pure. Secrets stay `Secret`, except in `reveal_body` and in the text of `metadata` that surrounds an owner record.
"""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import quote, unquote

from reconciler.engine.ports import Intent, Refused
from reconciler.model import owner_record as owners
from reconciler.model.address import Address
from reconciler.model.canonical import canonicalize, digests, settle
from reconciler.model.kind import Kind
from reconciler.model.owner_record import Owner
from reconciler.model.plan import Call, OwnerDraft, Plan
from reconciler.model.redaction import Redactor
from reconciler.model.snapshot import Place
from reconciler.model.value import (
    Json,
    JsonTemplate,
    Ref,
    Secret,
    Template,
    Value,
    has_secret,
    reveal,
    substitute,
)


class ResolvedValues:
    """The values of references: those that the plan resolved from live objects, and those of responses in this run."""

    def __init__(self, plan: Plan) -> None:
        self._resolved = plan.resolved
        self._answers: dict[Address, Mapping[str, Json]] = {}

    def learn(self, address: Address, kind: Kind, answer: Json) -> None:
        """Keeps the fields of an object from a response, without its one-time secret."""
        if isinstance(answer, Mapping):
            fields = {name: value for name, value in answer.items() if name != kind.one_time}
            if kind.key in fields:
                fields["id"] = fields[kind.key]
            self._answers[address] = {**self._answers.get(address, {}), **fields}

    def resolve(self, value: Value) -> Value:
        """The value with its references resolved; raises Refused if one has no value."""
        return substitute(value, self.reference)

    def path(self, path: str | Template) -> str:
        """The path with its references resolved and percent-encoded, each as one segment."""
        if isinstance(path, str):
            return path
        parts = (part if isinstance(part, str) else quote(str(self.reference(part)), safe="") for part in path.parts)
        return "".join(parts)

    def reference(self, ref: Ref) -> Json:
        """The value of a reference; raises Refused if it has none."""
        answer = self._answers.get(ref.target)
        found = _walk(answer, ref.output) if answer is not None else None
        if found is None:
            found = self._resolved.get(f"{ref.target}.{ref.output}")
        if found is None:
            raise Refused(f"no response of the platform has a value for {ref.target}.{ref.output}; plan again")
        return found


def _walk(body: Json, path: str) -> Json:
    for part in path.split("."):
        body = body.get(part) if isinstance(body, Mapping) else None
    return body


def reveal_body(body: Mapping[str, Value] | None) -> dict[str, Json] | None:
    """The body with its secrets in clear text. To be called when it is sent; the result is not kept."""
    return None if body is None else dict(reveal(body))


def make_body(call: Call, known: ResolvedValues, kind: Kind, owner: Owner | None) -> dict[str, Value] | None:
    """The request's body, with the owner record in `metadata` if the kind has one; raises Refused if it is too long."""
    if call.body is None and owner is None:
        return None
    filled: dict[str, Value] = known.resolve(dict(call.body or {}))
    for name in filled.keys() & kind.by_name.keys():
        if (map_form := kind.by_name[name].as_map) is not None:
            filled[name] = map_form.to_map(filled[name])
    if owner is not None and kind.keeps_owner and call.owner is not None:
        text = known.resolve(call.owner.text)
        own = str(reveal(text) or "")
        written = owners.write(own, owners.fit(own, owner, kind))
        if (over := len(written.encode(errors="surrogatepass")) - owners.LIMIT) > 0:
            raise Refused(f"metadata leaves no room for the owner record; shorten it by {over} bytes")
        filled["metadata"] = Secret(written, "metadata") if has_secret(text) else written
    return filled


def make_owner(draft: OwnerDraft, known: ResolvedValues, kind: Kind, *, stack: str, intent: str) -> Owner:
    """The owner record that a call writes, with the digest of every applied field."""
    # A binding has no intent: its salt is the address.
    salt = intent if kind.keeps_owner else str(draft.address)
    return Owner(
        stack=stack,
        address=draft.address,
        intent=intent,
        applied=digests(settle(kind, draft.applied, known.reference), salt),
        protect=draft.protect,
        pending=draft.pending,
        replaces=draft.replaces,
        sources=draft.sources,
    )


def make_locator(kind: Kind, collection: str, object_id: str) -> str:
    """The locator of an object, as in `Live.locator`: below a parent, PARENT-ID/ID."""
    return object_id if kind.parent is None else f"{unquote(collection.split('/')[-2])}/{object_id}"


def make_intent(
    intent_id: str,
    call: Call,
    filled: Mapping[str, Value],
    kind: Kind,
    plan: Plan,
    path: str,
    place: Place | None = None,
) -> Intent:
    """The intent of a create, which the journal stores before the request is sent."""
    unmarked = not kind.keeps_owner
    return Intent(
        id=intent_id,
        address=call.address,
        stack=plan.stack,
        path=path,
        # Without an id prefix the name is the id: a new object may have an old id, but its natural key is unique.
        before=ids_in_plan(plan, kind.name) if unmarked and kind.id_prefix else frozenset(),
        identity=natural_key(kind, filled) if unmarked else {},
        place=place,
    )


def natural_key(kind: Kind, fields: Mapping[str, Value]) -> dict[str, Json]:
    """The fields of the kind's natural key that occur in `fields`, in canonical form."""
    present = [kind.by_name[name] for name in kind.identity if name in fields]
    return {field.name: reveal(canonicalize(field, fields[field.name])) for field in present}


def make_redactor(plan: Plan) -> Redactor:
    """A redactor of all secrets of the plan: the platform may quote them in errors."""
    return Redactor(
        secret for call in plan.calls for secret in _find_secrets([call.body, call.owner.text if call.owner else ""])
    )


def _find_secrets(value: Value) -> list[str]:
    if value.__class__ is str:  # a fast path: most values are text
        return []
    match value:
        case Secret():
            return [value.reveal()] if value.reveal() else []
        case JsonTemplate(parts):
            return [secret for part in parts for secret in _find_secrets(part)]
        case Mapping():
            return [secret for item in value.values() for secret in _find_secrets(item)]
        case list() | tuple():
            return [secret for item in value for secret in _find_secrets(item)]
    return []


def ids_in_plan(plan: Plan, kind: str) -> frozenset[str]:
    """The ids of all objects of a kind that existed when the plan was created."""
    managed = {observed.id for address, observed in plan.observed.items() if address.kind == kind}
    others = (key for keys in plan.elsewhere.values() for key in keys)
    return frozenset(managed | {id for name, id in (*plan.unmanaged, *others) if name == kind})
