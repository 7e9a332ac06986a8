"""Turns a call of the plan into what is sent and remembered: references filled in, the owner record written.

Nothing here talks to anybody, and secrets stay `Secret` in everything but the body's metadata text and `payload`.
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
    Ref,
    Secret,
    Template,
    Value,
    has_secret,
    reveal,
    substitute,
)


class ResolvedValues:
    """The values behind references: of live objects as the plan saw them, and of responses in this run."""

    def __init__(self, plan: Plan) -> None:
        self._resolved = plan.resolved
        self._answers: dict[Address, Mapping[str, Json]] = {}

    def learn(self, address: Address, kind: Kind, answer: Json) -> None:
        """Keeps an object's fields as a response shows them; never its one-time secret."""
        if isinstance(answer, Mapping):
            fields = {name: value for name, value in answer.items() if name != kind.one_time}
            if kind.key in fields:
                fields["id"] = fields[kind.key]
            self._answers[address] = {**self._answers.get(address, {}), **fields}

    def resolve(self, value: Value) -> Value:
        """The value without references; raises Refused if one of them leads nowhere."""
        return substitute(value, self.reference)

    def path(self, path: str | Template) -> str:
        """A path with its references filled in, each as one segment whatever characters it holds."""
        if isinstance(path, str):
            return path
        parts = (part if isinstance(part, str) else quote(str(self.reference(part)), safe="") for part in path.parts)
        return "".join(parts)

    def reference(self, ref: Ref) -> Json:
        """The value behind a reference; raises Refused if it leads nowhere."""
        answer = self._answers.get(ref.target)
        found = _walk(answer, ref.output) if answer is not None else None
        if found is None:
            found = self._resolved.get(f"{ref.target}.{ref.output}")
        if found is None:
            raise Refused(f"{ref.target} has no {ref.output} that the platform told us; plan again")
        return found


def _walk(body: Json, path: str) -> Json:
    for part in path.split("."):
        body = body.get(part) if isinstance(body, Mapping) else None
    return body


def reveal_body(body: Mapping[str, Value] | None) -> dict[str, Json] | None:
    """A body with its secrets in the clear: made for the wire at the moment of sending, and never kept."""
    return None if body is None else dict(reveal(body))


def make_body(call: Call, known: ResolvedValues, kind: Kind, owner: Owner | None) -> dict[str, Value] | None:
    """The request's body, with the owner record in `metadata` where the kind keeps one."""
    if call.body is None and owner is None:
        return None
    filled: dict[str, Value] = known.resolve(dict(call.body or {}))
    for name in filled.keys() & kind.by_name.keys():
        if (spelt := kind.by_name[name].as_map) is not None:
            filled[name] = spelt.to_map(filled[name])
    if owner is not None and kind.keeps_owner and call.owner is not None:
        text = known.resolve(call.owner.text)
        own = str(reveal(text) or "")
        written = owners.write(own, owners.fit(own, owner, kind))
        if (over := len(written.encode(errors="surrogatepass")) - owners.LIMIT) > 0:
            raise Refused(f"its metadata is {over} bytes too long to leave room for the owner record; shorten it")
        filled["metadata"] = Secret(written, "metadata") if has_secret(text) else written
    return filled


def make_owner(draft: OwnerDraft, known: ResolvedValues, kind: Kind, *, stack: str, intent: str) -> Owner:
    """The record a call writes: every applied field as its digest, now that references are known."""
    # A binding keeps no intent: there the address is the salt.
    salt = intent if kind.keeps_owner else str(draft.address)
    return Owner(
        stack=stack,
        address=draft.address,
        intent=intent,
        applied=digests(settle(kind, draft.applied, known.reference), salt),
        protect=draft.protect,
        pending=draft.pending,
        replaces=draft.replaces,
    )


def make_locator(kind: Kind, collection: str, object_id: str) -> str:
    """As `Live.locator`: below a parent, which the path of the collection names, its id comes first."""
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
    """What the journal must know before the create leaves."""
    unmarked = not kind.keeps_owner
    return Intent(
        id=intent_id,
        address=call.address,
        stack=plan.stack,
        path=path,
        # Where a name is the id, a new object may bear the same one, and the natural key is unique there.
        before=ids_in_plan(plan, kind.name) if unmarked and kind.id_prefix else frozenset(),
        identity=natural_key(kind, filled) if unmarked else {},
        place=place,
    )


def natural_key(kind: Kind, fields: Mapping[str, Value]) -> dict[str, Json]:
    """The identity fields that an object shows, in canonical form."""
    shown = [kind.by_name[name] for name in kind.identity if name in fields]
    return {field.name: reveal(canonicalize(field, fields[field.name])) for field in shown}


def make_redactor(plan: Plan) -> Redactor:
    """Over all secrets of the plan: a platform may quote what it refuses."""
    return Redactor(
        secret for call in plan.calls for secret in _find_secrets([call.body, call.owner.text if call.owner else ""])
    )


def _find_secrets(value: Value) -> list[str]:
    if value.__class__ is str:  # nearly all that is in a plan
        return []
    match value:
        case Secret():
            return [value.reveal()] if value.reveal() else []
        case Mapping():
            return [secret for item in value.values() for secret in _find_secrets(item)]
        case list() | tuple():
            return [secret for item in value for secret in _find_secrets(item)]
    return []


def ids_in_plan(plan: Plan, kind: str) -> frozenset[str]:
    """Objects of the kind that were there when the plan was made."""
    seen = {each.id for address, each in plan.observed.items() if address.kind == kind}
    others = (each for found in plan.elsewhere.values() for each in found)
    return frozenset(seen | {id for name, id in (*plan.unmanaged, *others) if name == kind})
