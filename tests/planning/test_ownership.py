"""Which objects an address owns, after renames, interrupted replacements and creates of several runs."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reconciler.model.address import Address
from reconciler.model.manifest import Declaration
from reconciler.model.snapshot import Binding, Live, Snapshot
from reconciler.planning.matching.index import LiveIndex
from reconciler.planning.matching.ownership import Ownership
from reconciler.planning.matching.unclaimed import find_shared_records
from tests.harness.builders import KINDS, declare, live, manifest, record, snapshot
from tests.harness.tiers import examples


def edge(id: str, name: str, replaces: str | None = None, *, intent: str = "", second: int = 0) -> Live:
    """An edge with the owner record of an address, created by a separate run unless an intent is set."""
    owner = record(f"TLSEdge/{name}", {}, intent=intent or f"i-{id}", replaces=replaces)
    return live("TLSEdge", id, {"created_at": f"2026-01-01T00:00:{second:02}Z"}, owner=owner)


def declare_edge(name: str, *formers: str) -> Declaration:
    return declare(f"TLSEdge/{name}", moved=[f"TLSEdge/{former}" for former in formers])


def read_index(seen: Snapshot, *declarations: Declaration) -> LiveIndex:
    return LiveIndex.of(manifest(*declarations), seen, KINDS)


def ids_by_owner(ownership: LiveIndex | Ownership) -> dict[str, list[str]]:
    """The ids by the name of their owner."""
    return {
        address.name: sorted(live.id for live in live_objects)
        for address, live_objects in ownership.by_owner.items()
        if live_objects
    }


def list_superseded(ownership: LiveIndex | Ownership) -> list[tuple[str, str]]:
    return sorted((address.name, live.id) for address, live in ownership.superseded)


# --- renames ----------------------------------------------------------------------------------------------------------

OLD, NEW = edge("e1", "old"), edge("e2", "new", "e1")
ROW = [OLD, edge("e2", "mid", "e1"), edge("e3", "new", "e2")]


@pytest.mark.parametrize(
    ("live_objects", "declarations", "owners", "superseded"),
    [
        ([OLD, NEW], [declare_edge("new", "old")], {"new": ["e2"]}, [("new", "e1")]),
        ([OLD, NEW], [declare_edge("new")], {"new": ["e2"]}, [("new", "e1")]),
        ([OLD, NEW], [declare_edge("new", "old"), declare_edge("old")], {"new": ["e2"], "old": ["e1"]}, []),
        ([OLD, NEW], [declare_edge("new"), declare_edge("third", "old")], {"new": ["e2"], "old": ["e1"]}, []),
        ([OLD, NEW], [declare_edge("new", "old"), declare_edge("third", "old")], {"new": ["e2"], "old": ["e1"]}, []),
        ([OLD, NEW], [], {"new": ["e2"], "old": ["e1"]}, []),
        ([OLD, NEW], [declare_edge("third", "new")], {"new": ["e2"]}, [("new", "e1")]),
        ([OLD, NEW], [declare_edge("third", "new", "old")], {"new": ["e2"]}, [("new", "e1")]),
        (
            [OLD, NEW],
            [declare_edge("new"), declare("HTTPSEdge/x", moved=["TLSEdge/old"])],
            {"new": ["e2"]},
            [("new", "e1")],
        ),
        (ROW, [declare_edge("new", "mid", "old")], {"new": ["e3"]}, [("new", "e1"), ("new", "e2")]),
        (ROW, [declare_edge("new"), declare_edge("x", "mid")], {"mid": ["e2"], "new": ["e3"]}, [("mid", "e1")]),
        (ROW, [declare_edge("new"), declare_edge("x", "old")], {"new": ["e3"], "old": ["e1"]}, [("new", "e2")]),
        (
            [OLD, edge("e2", "y", "e1"), edge("e3", "x", "e1")],
            [declare_edge("x"), declare_edge("y")],
            None,
            [("x", "e1")],
        ),
        ([edge("e1", "old", "e2"), NEW], [declare_edge("new")], {"new": ["e1", "e2"]}, []),
        ([OLD, live("TCPEdge", "t", owner=record("TCPEdge/new", {}, replaces="e1"))], [declare_edge("new")], None, []),
    ],
    ids=[
        "renamed",
        "renamed without `moved`",
        "declared again",
        "renamed to a third",
        "renamed to two",
        "neither declared",
        "the successor renamed again",
        "both renamed to a third",
        "renamed to another kind",
        "three in a row",
        "of three, another declaration has the middle",
        "of three, another declaration has the first",
        "two successors",
        "each replaces the other",
        "the id of another kind",
    ],
)
def test_a_replaced_object_is_listed_under_the_new_address_of_its_successor(
    live_objects: list[Live],
    declarations: list[Declaration],
    owners: dict[str, list[str]] | None,
    superseded: list[tuple[str, str]],
) -> None:
    for order in (live_objects, live_objects[::-1]):
        index = read_index(snapshot(*order), *declarations)
        assert list_superseded(index) == superseded
        assert owners is None or ids_by_owner(index) == owners


# --- replacements and creates of several runs -------------------------------------------------------------------------

IDS = ("e0", "e1", "e2", "e3")
EDGES = st.lists(
    st.tuples(st.sampled_from("ab"), st.sampled_from([None, *IDS]), st.sampled_from("xyzw"), st.integers(0, 2)),
    max_size=len(IDS),
)


def resolve_duplicates(live_objects: list[Live]) -> tuple[list[Live], set[str]]:
    """The edges of one address that remain, and the ids of duplicates, by the rules of the documentation."""

    def was_replaced(live: Live) -> bool:
        return any(other.owner is not None and other.owner.replaces == live.id for other in live_objects)

    heads = [live for live in live_objects if not was_replaced(live)]
    intents = {live.owner.intent for live in live_objects if live.owner is not None}
    if len(live_objects) < 2 or len(heads) == 1:
        return (heads if len(live_objects) > 1 else live_objects), set()
    if not heads or len(intents) < len(live_objects):
        return live_objects, set()  # copies of a record, or edges that replace each other: ambiguous
    first = min(heads, key=lambda live: (live.body["created_at"], live.id))
    return [first], {live.id for live in heads if live is not first}


@settings(max_examples=examples(60))
@given(EDGES)
def test_the_documented_one_of_several_objects_with_one_address_remains(
    drawn: list[tuple[str, str | None, str, int]],
) -> None:
    live_objects = [
        edge(id, name, replaces, intent=intent, second=second)
        for id, (name, replaces, intent, second) in zip(IDS, drawn, strict=False)
    ]
    index = read_index(snapshot(*live_objects), declare_edge("a"), declare_edge("b"))
    expected: dict[str, list[str]] = {}
    superseded, duplicates = [], set()
    for name in "ab":
        lives = [live for live in live_objects if live.owner is not None and live.owner.address.name == name]
        remaining, duplicate_ids = resolve_duplicates(lives)
        duplicates |= duplicate_ids
        superseded += [(name, live.id) for live in lives if live not in remaining]
        expected |= {name: sorted(live.id for live in remaining)} if remaining else {}
    assert ids_by_owner(index) == expected
    assert list_superseded(index) == superseded
    assert {id for _, id in index.duplicates} == duplicates
    assert index.pending_elsewhere == set()


def test_a_copied_owner_record_does_not_affect_other_addresses() -> None:
    copies = [edge(id, "a", intent="i") for id in ("e1", "e2")]
    each_other = [edge("e3", "b", "e4"), edge("e4", "b", "e3")]
    duplicates = [edge(id, "c", second=second) for id, second in (("e5", 2), ("e6", 1))]
    index = read_index(snapshot(*copies, *each_other, *duplicates), *map(declare_edge, "abc"))
    assert ids_by_owner(index) == {"a": ["e1", "e2"], "b": ["e3", "e4"], "c": ["e6"]}
    assert list_superseded(index) == [("c", "e5")]
    assert set(index.duplicates) == {("TLSEdge", "e5")}


def test_an_object_without_a_date_counts_as_the_oldest() -> None:
    undated = live("TLSEdge", "e9", {"created_at": None}, owner=record("TLSEdge/a", {}, intent="i9"))
    assert ids_by_owner(read_index(snapshot(edge("e1", "a"), undated), declare_edge("a"))) == {"a": ["e9"]}


def source(name: str) -> Live:
    return live("EventSource", f"{name}.v0", parent="esb_1")


@pytest.mark.parametrize(
    ("bindings", "superseded"),
    [
        ({"EventSource/x": Binding("esb_1/b.v0", replaces="esb_1/a.v0")}, [("x", "a.v0")]),
        ({"EventSource/x": Binding("esb_1/b.v0")}, []),
        ({"EventSource/x": Binding("esb_1/b.v0", replaces="esb_1/z.v0")}, []),
        ({"TLSEdge/x": Binding("e1", replaces="e2")}, []),
        ({"BotUser/x": Binding("esb_1/b.v0", replaces="esb_1/a.v0")}, []),
    ],
    ids=["exists", "nothing replaced", "deleted", "a kind with metadata", "the locator of another kind"],
)
def test_a_binding_records_the_object_that_was_replaced(
    bindings: dict[str, Binding], superseded: list[tuple[str, str]]
) -> None:
    live_objects = [source("a"), source("b"), edge("e1", "p"), edge("e2", "q")]
    last = {"EventSource/z": Binding("esb_1/a.v0", replaces="esb_1/b.v0")}  # read after the others
    removed_kind = snapshot(*live_objects, bindings={**bindings, **last})
    removed_kind.bindings[Address("Retired", "x")] = Binding("e1", replaces="e2")  # type: ignore[index]
    assert list_superseded(read_index(removed_kind)) == [*superseded, ("z", "b.v0")]
    assert list_superseded(read_index(snapshot(*live_objects, bindings=bindings))) == superseded


# --- credentials of several runs --------------------------------------------------------------------------------------


def credential(number: int, *, pending: bool = True) -> Live:
    body = {"created_at": f"2026-01-01T00:00:0{number}Z"}
    return live("APIKey", f"ak_{number}", body, owner=record("APIKey/a", {}, intent=f"i{number}", pending=pending))


@pytest.mark.parametrize(
    ("pending", "receipts", "undelivered", "remaining", "elsewhere"),
    [
        ([True, True, True], [], [2, 3], [1], True),  # another run may deliver the token of the first
        ([True, True, True], [], [1, 2, 3], [1], False),  # this store created all of them
        ([True, True, True], [], [1, 3], [1, 2], False),
        ([True, True, True], [2], [1, 3], [2], False),  # the second is delivered and remains for every store
        ([True, False, True], [], [1, 3], [2], False),
        ([False, False, True], [], [3], [1, 2], False),
        ([False, True, True], [], [2, 3], [1], False),
        ([True, True, True], [], [], [1, 2, 3], False),
    ],
    ids=str,
)
def test_only_undelivered_duplicate_credentials_are_deleted(
    pending: list[bool], receipts: list[int], undelivered: list[int], remaining: list[int], elsewhere: bool
) -> None:
    live_objects = [credential(number, pending=is_pending) for number, is_pending in enumerate(pending, start=1)]
    seen = snapshot(
        *live_objects[::-1], receipts=[f"i{n}" for n in receipts], undelivered=[f"i{n}" for n in undelivered]
    )
    index = read_index(seen, declare("APIKey/a"))
    assert ids_by_owner(index) == {"a": [f"ak_{n}" for n in remaining]}
    assert {id for _, id in index.duplicates} == {f"ak_{n}" for n in (1, 2, 3) if n not in remaining}
    assert bool(index.pending_elsewhere) is elsewhere


# --- orphans ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("intents", "shared"), [(["i", "i"], True), (["i", "j"], False), (["i", "j", "i"], True), (["i"], False)]
)
def test_orphans_share_an_owner_record_if_they_have_one_intent(intents: list[str], shared: bool) -> None:
    live_objects = [edge(f"e{n}", "a", intent=intent) for n, intent in enumerate(intents)]
    single = edge("x", "b")
    pairs: Any = [(edge_.owner.address, edge_) for edge_ in [single, *live_objects] if edge_.owner is not None]
    expected = {pairs[1][0]: live_objects} if shared else {}
    assert find_shared_records(pairs) == expected


def test_orphans_without_an_owner_record_share_none() -> None:
    pairs = [(Address("EventSource", "x"), source(name)) for name in "ab"]
    assert find_shared_records(pairs) == {}
