"""Builds the API calls of one decision, as few as are safe; `sequence` orders them across resources.

POST creates an object with all its modules. PUT sets a single differing module. One atomic PATCH makes all other
updates, or a PUT of the whole object where the agent has it. DELETE on the path of a module removes it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from urllib.parse import quote

from msgspec.structs import replace

from reconciler.model.address import Address
from reconciler.model.canonical import canonicalize, collect_applied, digest_sources, read
from reconciler.model.change import Action, Order
from reconciler.model.fields.annotations import Immutable, InputOnly, PathOnly, ServerDefault, UpdateOnly
from reconciler.model.fields.field import Field, Shape
from reconciler.model.kind import Home, Kind
from reconciler.model.plan import Call, OwnerDraft, Verb, create_id
from reconciler.model.snapshot import Live
from reconciler.model.value import Ref, Template, Value
from reconciler.planning.comparing.canonical_fields import UNREAD, agrees, body_value
from reconciler.planning.comparing.server_defaults import keep_live_defaults, keep_live_parts
from reconciler.planning.deciding.decision import Decision


def build_calls(decision: Decision) -> Iterator[Call]:
    """The calls of one decision; where their order matters, each needs the one before it."""
    match decision.action:
        case Action.CREATE:
            yield from _build_create(decision)
        case Action.REPLACE:
            yield from _build_create(decision)
            if decision.ends_live:
                makes_room = decision.order is Order.DELETE_FIRST
                yield build_delete(decision.kind, decision.address, _require_live(decision), unbinds=makes_room)
        case Action.UPDATE | Action.ADOPT | Action.MOVE if decision.modules_only:
            yield from _build_module_calls(decision)
        case Action.UPDATE | Action.ADOPT | Action.MOVE:
            yield from _build_update(decision)
        case Action.DELETE:
            yield build_delete(
                decision.kind, decision.address, _require_live(decision), unbinds=not decision.address_reused
            )
        case Action.FORGET if decision.kind.keeps_owner:
            yield _build_patch(decision, {"metadata": _require_live(decision).metadata})


def build_delete(kind: Kind, address: Address, live: Live, *, unbinds: bool = True) -> Call:
    """The DELETE of an object. `unbinds`: deletes its binding in the store too."""
    return Call(
        id=f"delete {address} {live.locator}",
        address=address,
        verb=Verb.DELETE,
        path=object_path(kind, live),
        target=live.id,
        unbinds=unbinds,
    )


def collection_path(kind: Kind, parent: Value = None) -> str | Template:
    """The path of a collection. `parent`: the parent's id, or the reference that the apply resolves to it."""
    if kind.parent is None:
        return kind.path
    before, _, after = kind.path.partition(f"{{{kind.parent.field}}}")
    match parent:
        case Ref():
            return Template((before, parent, after))
        case Template():
            return Template((before, *parent.parts, after))
    return f"{before}{quote(str(parent), safe='')}{after}"


def object_path(kind: Kind, live: Live) -> str:
    """The path of one object, with escaped ids."""
    return f"{collection_path(kind, live.parent_id)}/{quote(live.id, safe='')}"


def _require_live(decision: Decision) -> Live:
    assert decision.live is not None
    return decision.live


def _draft_record(decision: Decision, *, pending: bool = False, without: Collection[str] = ()) -> OwnerDraft:
    """The owner record to write with a call of the decision, except for fields `without` that are sent later.

    pending   says that the one-time secret is not delivered yet
    """
    sent = {name: value for name, value in decision.want.items() if name not in without}
    keeps_record = decision.action in (Action.UPDATE, Action.MOVE)
    owner = decision.live.owner if decision.live is not None and keeps_record else None
    if "metadata" in decision.want or decision.live is None:
        metadata = decision.spec.get("metadata")
    else:
        metadata = decision.live.metadata  # ignored, therefore unchanged
    return OwnerDraft(
        address=decision.address,
        text=metadata or "",
        intent=owner.intent if owner is not None else None,
        applied=collect_applied(decision.kind, sent),
        protect=decision.protect,
        pending=pending,
        replaces=(_require_live(decision).id if decision.kind.keeps_owner else _require_live(decision).locator)
        if decision.action is Action.REPLACE
        else owner.replaces
        if owner is not None
        else None,
        adopted=decision.adopted and keeps_record,
        sources=digest_sources(decision.kind, {name: decision.spec.get(name) for name in sent})
        if decision.kind.keeps_owner
        else {},
    )


def _build_create(decision: Decision) -> Iterator[Call]:
    kind, spec = decision.kind, decision.spec
    assert decision.declaration is not None
    body: dict[str, Value] = dict(kind.wire.fixed)
    later: dict[str, Value] = {}
    for field in kind.fields:
        if spec.get(field.name) is None or PathOnly in field:
            continue
        (later if UpdateOnly in field else body)[field.name] = body_value(field, spec[field.name])
    body.update(_keep_choices(decision))
    one_time = kind.one_time is not None
    create = Call(
        id=create_id(decision.address),
        address=decision.address,
        verb=Verb.CREATE,
        path=collection_path(kind, spec.get(kind.parent.field) if kind.parent else None),
        body=body,
        owner=_draft_record(decision, pending=one_time, without=later),
        deliver=dict(decision.declaration.deliver) if one_time else {},
    )
    yield create
    if later or one_time:
        # The owner record names a secret or field only after it was delivered or accepted.
        parent = collection_path(kind, spec.get(kind.parent.field) if kind.parent else None)
        before = parent.parts if isinstance(parent, Template) else (parent,)
        yield Call(
            id=f"complete {decision.address}",
            address=decision.address,
            verb=Verb.UPDATE,
            path=Template((*before, "/", Ref(decision.address))),
            body=later,
            needs=(create.id,),
            owner=_draft_record(decision),
        )


def _keep_choices(decision: Decision) -> Iterator[tuple[str, Value]]:
    """Undeclared values of an object that another with the same identity replaces, such as the filter of a source."""
    kind, live = decision.kind, decision.live
    is_same = live is not None and all(decision.want.get(name) == decision.have.get(name) for name in kind.identity)
    for field in kind.fields if live is not None and kind.identity and is_same else ():
        is_choice = ServerDefault in field and Immutable in field and not field.refs and field.name_of is None
        if live is not None and is_choice and decision.spec.get(field.name) is None:
            value = read(field, live.body)
            if value not in (None, "", [], {}):
                yield field.name, value


def _build_patch(decision: Decision, body: Mapping[str, Value], owner: OwnerDraft | None = None) -> Call:
    live = _require_live(decision)
    return Call(
        id=f"update {decision.address}",
        address=decision.address,
        verb=Verb.UPDATE,
        path=object_path(decision.kind, live),
        target=live.id,
        body=body,
        owner=owner,
    )


def _build_module_call(
    decision: Decision, verb: Verb, segment: str, body: Mapping[str, Value] | None, *needs: str
) -> Call:
    live = _require_live(decision)
    return Call(
        id=f"{verb.value} {segment} of {decision.address}",
        address=decision.address,
        verb=verb,
        path=f"{object_path(decision.kind, live)}/{segment}",
        target=live.id,
        body=body,
        needs=needs,
    )


def _build_update(decision: Decision) -> Iterator[Call]:
    set_, removed = _split_fields(decision)
    swaps = _is_swap(decision.kind, set_, removed)
    if swaps and (opening := _find_reopening(decision)) is not None:
        set_ = [*(field for field in set_ if field is not opening), opening]
    text_moves = any(field.name == "metadata" for field in set_)
    writes_record = decision.kind.keeps_owner and (decision.moves_record or text_moves)
    if len(set_) == 1 and set_[0].module and not writes_record:
        field = set_[0]
        main = [_build_module_call(decision, Verb.PUT, field.name, _build_value(decision, field))]
    elif set_ or writes_record:
        sent = [field for field in set_ if not (writes_record and field.name == "metadata")]
        if decision.kind.home is Home.AGENT:
            sent = [field for field in decision.kind.fields if field in set_ or _is_sent_again(decision, field)]
        body = {field.name: _build_value(decision, field) for field in sent}
        # For kinds without metadata, the store writes a binding from the same draft.
        draft = _draft_record(decision) if writes_record or not decision.kind.keeps_owner else None
        main = [replace(_build_patch(decision, body, draft), is_whole=decision.kind.home is Home.AGENT)]
    else:
        main = []
    first = [field for field in removed if _must_precede(decision, field, set_)]
    if swaps:
        first = _plan_closing(
            decision, [*first, *(field for field in removed if field.name in decision.kind.modules.exclusive)]
        )
    yield from _chain(
        [_build_module_call(decision, Verb.REMOVE, str(field.delete_segment), None) for field in first]
        + main
        + [
            _build_module_call(decision, Verb.REMOVE, str(field.delete_segment), None)
            for field in removed
            if field not in first
        ]
    )


def _is_sent_again(decision: Decision, field: Field) -> bool:
    """Whether the body of a whole object has a field that does not differ: a declared one, or the agent's choice."""
    if decision.spec.get(field.name) is not None:
        return True
    return field.name not in decision.want and decision.have.get(field.name) not in (None, UNREAD)


def _chain(calls: list[Call]) -> Iterator[Call]:
    before: Call | None = None
    for call in calls:
        yield call if before is None else _add_needs(call, before.id)
        before = call


def _add_needs(call: Call, *needs: str) -> Call:
    return replace(call, needs=(*call.needs, *needs))


def _split_fields(decision: Decision) -> tuple[list[Field], list[Field]]:
    """The differing fields: those that a body sets, and those that DELETE removes."""
    set_: list[Field] = []
    removed: list[Field] = []
    for difference in decision.differences:
        field = difference.field
        is_removed = (
            field.name in decision.want and decision.want[field.name] is None and field.delete_segment is not None
        )
        unless = field.read_as.unless if field.read_as else ""
        if is_removed and unless and decision.want.get(unless) is not None:
            continue  # the platform removes it when the other field is set
        (removed if is_removed else set_).append(field)
    return set_, removed


def _must_precede(decision: Decision, field: Field, set_: list[Field]) -> bool:
    """Whether a field must be removed before the others are set.

    The platform may refuse the new values while it is set. A write-only field is removed first too: once the owner
    record does not name it any more, nothing says that it is still set.
    """
    if InputOnly in field:
        return True
    if any(other.read_as is not None and other.read_as.unless == field.name for other in set_):
        return True
    for path, value in decision.kind.modules.remove_before.items():
        top, _, inner = path.partition(".")
        part, live = decision.want.get(top), decision.have.get(top)
        if isinstance(part, dict) and part.get(inner) == value and any(field.name == top for field in set_):
            return True
        # A live value that excludes the new values is removed before they are set.
        if field.name == top and isinstance(live, dict) and live.get(inner) == value and set_:
            return True
    return False


def _is_swap(kind: Kind, set_: Collection[Field], removed: Collection[Field]) -> bool:
    """Whether one of several mutually exclusive modules, such as authentication modules, replaces another.

    The old one must be removed first, and no traffic may pass while neither is set.
    """
    return any(field.name in kind.modules.exclusive for field in set_) and any(
        field.name in kind.modules.exclusive for field in removed
    )


def _plan_closing(decision: Decision, removed: Collection[Field]) -> list[Field]:
    """The fields to remove before a new exclusive module is set: first the traffic module, if it is set."""
    traffic = decision.kind.modules.traffic
    rest = [field for field in removed if field.name != traffic]
    return [decision.kind.by_name[traffic], *rest] if decision.have.get(traffic) is not None else rest


def _find_reopening(decision: Decision) -> Field | None:
    """The traffic module to set again after an exchange; None if it is not declared."""
    traffic = decision.kind.modules.traffic
    return decision.kind.by_name[traffic] if decision.want.get(traffic) is not None else None


def _build_value(decision: Decision, field: Field) -> Value:
    """The value of a field in a body: the declared one, the live one if it is ignored, or the empty value."""
    differing = {change.path for difference in decision.differences for change in difference.changes}
    if field.name in decision.want:
        value = decision.spec.get(field.name)
    elif field.name not in {path.partition(".")[0] for path in differing}:
        value = decision.have.get(field.name)  # sent again, since the body has the whole object
    else:
        value = field.default_beside(decision.want) if ServerDefault in field else decision.have.get(field.name)
    if value is not None:
        value = _fill_defaults(field, value, decision.want.get(field.name), decision.have.get(field.name))
        if not _excludes_choices(decision.kind, field, value):
            value = keep_live_defaults(field, value, decision.have.get(field.name), differing)
        return body_value(field, keep_live_parts(field, value, read(field, _require_live(decision).body)))
    empty = canonicalize(field, None)
    return "" if empty is None and field.shape in (Shape.TEXT, Shape.ANY) else empty


def _fill_defaults(field: Field, value: Value, want: Value, have: Value) -> Value:
    """A declared value completed with the documented defaults of undeclared parts whose live value differs.

    Without them the platform could choose another value.
    """
    if not (isinstance(value, dict) and isinstance(want, dict) and isinstance(have, dict)):
        return value
    whole = dict(value)
    for sub in field.fields:
        declared, default, live = value.get(sub.name), want.get(sub.name), have.get(sub.name)
        if declared is not None:
            whole[sub.name] = _fill_defaults(sub, declared, default, live)
        elif default is not None and InputOnly not in sub and not agrees(sub, default, live):
            whole[sub.name] = default
    return whole


def _excludes_choices(kind: Kind, field: Field, value: Value) -> bool:
    """Whether the platform accepts the value only without the parts that it chose for another value."""
    rules = ((path.partition("."), excluding) for path, excluding in kind.modules.remove_before.items())
    return isinstance(value, dict) and any(
        top == field.name and value.get(inner) == excluding for (top, _, inner), excluding in rules
    )


def _build_module_calls(decision: Decision) -> Iterator[Call]:
    """The calls for the modules of an unmanaged object, such as a route that is named by id.

    Access rules are set before the backend, and removed after it (`modules_by_id` has the order).
    """
    differing = {difference.field.name: difference.field for difference in decision.differences}
    put = [field for field in differing.values() if decision.want[field.name] is not None]
    removed = [field for field in differing.values() if decision.want[field.name] is None]
    first: list[Field] = []
    if _is_swap(decision.kind, put, removed):
        first = _plan_closing(decision, [field for field in removed if field.name in decision.kind.modules.exclusive])
        opening = _find_reopening(decision)
        put = [*(field for field in put if field is not opening), *([opening] if opening else [])]
        removed = [field for field in removed if field not in first]
    position = decision.kind.modules_by_id.index
    put.sort(key=lambda field: position(field.name))
    removed.sort(key=lambda field: -position(field.name))
    yield from _chain(
        [_build_module_call(decision, Verb.REMOVE, field.name, None) for field in first]
        + [_build_module_call(decision, Verb.PUT, field.name, _build_value(decision, field)) for field in put]
        + [_build_module_call(decision, Verb.REMOVE, field.name, None) for field in removed]
    )
