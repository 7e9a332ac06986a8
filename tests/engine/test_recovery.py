"""Recovery of a create whose response was lost, in the same run and in the next."""

from __future__ import annotations

import dataclasses
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pytest
from msgspec.structs import replace

from reconciler import kinds
from reconciler.engine.observe import observe
from reconciler.engine.ports import Check, Conflict, Failure, Gone, Intent, Lost, Refused, Transient
from reconciler.engine.recovery import find_unsettled, is_created_by, may_still_take_effect, settle
from reconciler.engine.retry import RetryPolicy
from reconciler.model import owner_record as owners
from reconciler.model.address import Address
from reconciler.model.event import Ended, Outcome
from reconciler.model.owner_record import Owner
from reconciler.model.plan import Call, Plan
from reconciler.model.snapshot import Binding, Listing, Live, Snapshot
from reconciler.model.value import Json
from tests.harness.engine import EngineHarness, Fault, MemoryJournal, MemoryPlatform, create

EDGE = create("TLSEdge/payments", "/edges/tls")
BOT = create("BotUser/berlin", "/bot_users", {"name": "berlin"})
ROUTE = create("HTTPSEdgeRoute/root", "/edges/https/edghts_0001/routes", {"match": "/", "match_type": "path_prefix"})
SOURCE = create("EventSource/made", "/event_subscriptions/esb_0001/sources", {"type": "ip_policy_created.v0"})
RESET = Lost("connection reset")


@pytest.fixture
def world() -> EngineHarness:
    world = EngineHarness(MemoryPlatform(kinds.every()))
    world.platform.objects["/edges/https"] = {"edghts_0001": {"id": "edghts_0001"}}
    world.platform.objects["/event_subscriptions"] = {"esb_0001": {"id": "esb_0001"}}
    return world


async def only(world: EngineHarness, call: Call, **more: Any) -> Ended:
    (ended,) = (await world.end_events(Plan("prod", calls=(call,), **more))).values()
    return ended


@pytest.mark.parametrize("call", [EDGE, BOT, ROUTE, SOURCE], ids=lambda call: call.id)
@pytest.mark.parametrize("effect", [False, True])
async def test_after_a_lost_create_exactly_one_object_exists(world: EngineHarness, call: Call, effect: bool) -> None:
    assert isinstance(call.path, str)
    world.platform.faults = [Fault("POST", call.path, RESET, effect=effect)]
    ended = await only(world, call)
    assert len(world.platform.all(call.path)) == 1
    assert ended.outcome is (Outcome.ALREADY if effect else Outcome.DONE)
    assert len(world.platform.requests("POST")) == (1 if effect else 2)
    assert list(world.journal.concluded.values()) == ([ended.id] if effect else [None, ended.id])


@pytest.mark.parametrize("seed", range(40))
async def test_after_any_number_of_lost_creates_exactly_one_object_exists(world: EngineHarness, seed: int) -> None:
    bits = [bool(seed >> n & 1) for n in range(5)]
    world.platform.faults = [Fault("POST", "/edges/tls", RESET, effect=effect) for effect in bits]
    assert (await only(world, EDGE)).outcome in (Outcome.DONE, Outcome.ALREADY)
    assert len(world.platform.all("/edges/tls")) == 1


async def test_a_rejected_create_is_retried_with_its_intent(
    world: EngineHarness,
) -> None:
    world.platform.faults = [
        Fault("POST", "/edges/tls", RESET),
        Fault("POST", "/edges/tls", Transient("503", status=503), times=2),
    ]
    ended = await only(world, EDGE)
    assert len(world.platform.requests("POST")) == 4
    assert list(world.journal.concluded.values()) == [None, ended.id]


async def test_an_earlier_object_of_the_same_name_is_not_recovered(world: EngineHarness) -> None:
    world.platform.objects["/bot_users"] = {"bot_9": {"id": "bot_9", "name": "berlin"}}
    world.platform.faults = [Fault("POST", "/bot_users", RESET)]
    ended = await only(world, BOT, unmanaged=(("BotUser", "bot_9"),))
    assert ended.id == "bot_0001"


async def test_an_object_of_another_intent_is_not_recovered(world: EngineHarness) -> None:
    await only(world, create("TLSEdge/other", "/edges/tls"))
    world.platform.faults = [Fault("POST", "/edges/tls", RESET)]
    assert (await only(world, EDGE)).id == "edgtls_0002"


async def test_a_failed_list_is_retried_during_recovery(world: EngineHarness) -> None:
    world.platform.faults = [
        Fault("POST", "/edges/tls", RESET, effect=True),
        Fault("GET", "/edges/tls", Transient("502", status=502), times=3),
    ]
    assert (await only(world, EDGE)).outcome is Outcome.ALREADY
    assert len(world.platform.all("/edges/tls")) == 1


async def test_without_a_list_the_create_fails_and_its_intent_remains_open(world: EngineHarness) -> None:
    world.platform.faults = [
        Fault("POST", "/edges/tls", RESET, effect=True),
        Fault("GET", "/edges/tls", Transient("502", status=502), times=99),
    ]
    ended = await only(world, EDGE)
    assert ended.outcome is Outcome.FAILED
    assert "its outcome is unknown" in ended.why
    assert len(world.journal.open) == 1
    assert len(world.platform.requests("POST")) == 1


async def test_intents_remain_open_if_the_platform_never_responds(world: EngineHarness) -> None:
    world.platform.faults = [Fault("POST", "/edges/tls", RESET, times=99)]
    ended = await only(world, EDGE)
    assert (ended.outcome, ended.why) == (Outcome.FAILED, "connection reset")
    assert len(world.journal.open) == len(world.platform.requests("POST")) == RetryPolicy().attempts


async def test_the_object_of_the_last_lost_attempt_is_found(world: EngineHarness) -> None:
    world.platform.faults = [
        Fault("POST", "/edges/tls", RESET, times=9),
        Fault("POST", "/edges/tls", RESET, effect=True),
    ]
    assert (await only(world, EDGE)).outcome is Outcome.ALREADY
    assert len(world.platform.all("/edges/tls")) == 1


async def test_an_object_that_stale_lists_lack_is_recovered_by_the_next_run(world: EngineHarness) -> None:
    world.platform.faults = [Fault("POST", "/bot_users", RESET, effect=True)]
    world.platform.stale = 2
    world.platform._first["/bot_users"] = []

    def unique(method: str, path: str, body: Any) -> Refused | None:
        taken = {body["name"] for body in world.platform.all("/bot_users")}
        return Refused("exists", status=400) if method == "POST" and body["name"] in taken else None

    world.platform.refuse = unique
    ended = await only(world, BOT)
    assert ended.outcome is Outcome.FAILED  # both searches read stale lists
    assert len(world.journal.open) == 2
    snapshot = await observe(world.platform, [kinds.get("BotUser")])
    bound = await settle(world.journal.open.copy().values(), snapshot, kinds.every(), world.journal)
    assert bound == {BOT.address: Binding("bot_0001")}
    assert len(world.platform.all("/bot_users")) == 1


@pytest.mark.parametrize(
    "refusal", [Refused("exists", status=400), Conflict("exists", status=409), Gone("no parent", status=404)], ids=repr
)
async def test_the_object_of_the_first_attempt_is_found_if_the_retry_is_refused(
    world: EngineHarness, refusal: Failure
) -> None:
    world.platform.stale = 1
    world.platform._first["/bot_users"] = []
    world.platform.faults = [
        Fault("POST", "/bot_users", RESET, effect=True),
        Fault("POST", "/bot_users", refusal, nth=2),
    ]
    ended = await only(world, BOT)
    assert (ended.outcome, ended.id) == (Outcome.ALREADY, "bot_0001")
    assert len(world.platform.all("/bot_users")) == 1


class Wordless(MemoryPlatform):
    """Responds to its first create with an object without an id."""

    async def send(self, *request: Any, **options: Any) -> Json:
        answer = await super().send(*request, **options)
        return {} if self.count == 1 else answer


async def test_the_object_of_a_create_is_found_if_its_response_has_no_id() -> None:
    world = EngineHarness(Wordless(kinds.every()))
    ended = await only(world, EDGE)
    assert (ended.outcome, ended.id) == (Outcome.ALREADY, "edgtls_0001")
    assert len(world.platform.all("/edges/tls")) == 1


async def test_no_object_is_deleted_if_two_without_owner_record_match(world: EngineHarness) -> None:
    world.platform.objects["/bot_users"] = {
        "bot_9": {"id": "bot_9", "name": "berlin"}
    }  # created by hand during the apply
    world.platform.faults = [Fault("POST", "/bot_users", RESET, effect=True)]
    await only(world, BOT)
    assert world.platform.requests("DELETE") == []
    assert len(world.platform.all("/bot_users")) == 2


class Backwards(MemoryPlatform):
    """Of two objects, the one with the higher id is the older one."""

    def _create(self, path: str, body: dict[str, Json]) -> Json:
        answer = super()._create(path, body)
        body["created_at"] = f"2026-01-01T00:00:{60 - self.count:02}Z"
        return answer


async def test_the_newer_of_two_objects_of_one_create_is_deleted() -> None:
    """As planning chooses, so that concurrent runs choose the same one."""
    world = EngineHarness(Backwards(kinds.every()))
    world.platform.stale = 1
    world.platform._first["/edges/tls"] = []
    world.platform.faults = [Fault("POST", "/edges/tls", RESET, effect=True, times=2)]
    ended = await only(world, EDGE)
    assert (ended.outcome, ended.id) == (Outcome.ALREADY, "edgtls_0002")
    assert [body["id"] for body in world.platform.all("/edges/tls")] == ["edgtls_0002"]
    assert sorted(map(str, world.journal.concluded.values())) == ["None", "edgtls_0002"]


async def test_a_binding_of_an_object_with_owner_record_contains_only_id_and_protection(world: EngineHarness) -> None:
    call = create("TLSEdge/payments", "/edges/tls", {"description": "x"}, applied={"description": "x"})
    assert call.owner is not None
    await only(world, replace(call, owner=replace(call.owner, protect=True, replaces="edgtls_7")))
    assert world.journal.bindings == {call.address: Binding("edgtls_0001", protect=True)}


async def test_recovery_lists_after_the_lag_of_the_platform(world: EngineHarness) -> None:
    world.platform.faults = [Fault("POST", "/edges/tls", RESET, effect=True)]
    await only(world, EDGE)
    assert world.clock.time >= RetryPolicy().lag


async def test_a_duplicate_that_a_stale_list_lacked_is_deleted(world: EngineHarness) -> None:
    world.platform.faults = [Fault("POST", "/edges/tls", RESET, effect=True)]
    world.platform.stale = 1
    world.platform._first["/edges/tls"] = []
    ended = await only(world, EDGE)
    assert [body["id"] for body in world.platform.all("/edges/tls")] == [ended.id]


class TestSettling:
    """Intents that an earlier run left open."""

    async def settle_intent(self, intent: Intent, listing: Listing) -> tuple[MemoryJournal, Any]:
        journal = MemoryJournal()
        await journal.intend(intent)
        snapshot = Snapshot({intent.address.kind: listing})
        return journal, await settle([intent], snapshot, kinds.every(), journal)

    def bot(self, **more: Any) -> Intent:
        return Intent("i", Address("BotUser", "b"), "prod", "/bot_users", identity={"name": "berlin"}, **more)

    async def test_an_object_found_by_its_natural_key_is_bound(self) -> None:
        listing = Listing((Live("BotUser", "bot_1", {"id": "bot_1", "name": "berlin"}),))
        journal, bound = await self.settle_intent(self.bot(), listing)
        assert bound == journal.bindings == {Address("BotUser", "b"): Binding("bot_1")}
        assert journal.concluded == {"i": "bot_1"}

    @pytest.mark.parametrize("gone", ["bot_1", "bot_3"])
    async def test_the_binding_is_replaced_if_its_object_was_deleted(self, gone: str) -> None:
        journal, address = MemoryJournal(), Address("BotUser", "b")
        await journal.intend(self.bot())
        listing = Listing((Live("BotUser", "bot_2", {"id": "bot_2", "name": "berlin"}),))
        snapshot = Snapshot({"BotUser": listing}, {address: Binding(gone)})
        bound = await settle([self.bot()], snapshot, kinds.every(), journal)
        assert bound == journal.bindings == {address: Binding("bot_2")}

    async def test_the_binding_is_unchanged_if_it_names_the_object(self) -> None:
        """The binding does not name it as replaced, which would delete it."""
        journal, address = MemoryJournal(), Address("BotUser", "b")
        await journal.intend(self.bot())
        listing = Listing((Live("BotUser", "bot_1", {"id": "bot_1", "name": "berlin"}),))
        snapshot = Snapshot({"BotUser": listing}, {address: Binding("bot_1")})
        assert await settle([self.bot()], snapshot, kinds.every(), journal) == journal.bindings == {}
        assert journal.concluded == {"i": "bot_1"}

    async def test_an_intent_without_a_natural_key_finds_nothing(self) -> None:
        listing = Listing((Live("BotUser", "bot_1", {"id": "bot_1", "name": "berlin"}),))
        journal, bound = await self.settle_intent(dataclasses.replace(self.bot(), identity={}), listing)
        assert (bound, journal.concluded) == ({}, {"i": None})

    @pytest.mark.parametrize(
        ("known", "replaces"),
        [
            (Binding("esb_1/old.v0"), "esb_1/old.v0"),
            (Binding("esb_1/old.v0", replaces="esb_1/oldest.v0"), "esb_1/old.v0"),
            (Binding("esb_1/gone.v0", replaces="esb_1/oldest.v0"), "esb_1/oldest.v0"),
            (Binding("esb_1/gone.v0", replaces="esb_1/new.v0"), None),
            (Binding("esb_1/gone.v0"), None),
        ],
    )
    async def test_a_binding_names_the_replaced_object_while_that_exists(
        self, known: Binding, replaces: str | None
    ) -> None:
        intent = Intent(
            "i", Address("EventSource", "s"), "prod", "/event_subscriptions/esb_1/sources", identity={"type": "new.v0"}
        )
        journal = MemoryJournal()
        await journal.intend(intent)
        types = [f"{name}.v0" for name in ("oldest", "old", "new")]
        listing = Listing(tuple(Live("EventSource", type, {"type": type}, "esb_1") for type in types))
        snapshot = Snapshot({"EventSource": listing}, {intent.address: known})
        bound = await settle([intent], snapshot, kinds.every(), journal)
        assert bound == {intent.address: Binding("esb_1/new.v0", replaces=replaces)}

    async def test_an_intent_remains_open_if_two_objects_match(self) -> None:
        listing = Listing(tuple(Live("BotUser", id, {"id": id, "name": "berlin"}) for id in ("bot_1", "bot_2")))
        journal, bound = await self.settle_intent(self.bot(), listing)
        assert (bound, journal.concluded, list(journal.open)) == ({}, {}, ["i"])

    @pytest.mark.parametrize("intent", ["i", "of another"])
    async def test_an_object_with_owner_record_is_concluded_without_a_binding(self, intent: str) -> None:
        body = {"id": "edgtls_1", "metadata": owners.write("", Owner("prod", EDGE.address, intent))}
        journal, bound = await self.settle_intent(INTENT, Listing((Live("TLSEdge", "edgtls_1", body),)))
        assert (bound, journal.bindings) == ({}, {})
        assert journal.concluded == {"i": "edgtls_1" if intent == "i" else None}

    async def test_an_intent_that_cannot_be_settled_does_not_prevent_others(self) -> None:
        """A kind that is not read, and an incomplete list."""
        journal = MemoryJournal()
        intents = [
            dataclasses.replace(INTENT, id="unread"),
            dataclasses.replace(self.bot(), id="cut"),
            dataclasses.replace(INTENT, id="absent"),
        ]
        intents[0] = dataclasses.replace(intents[0], address=Address("TCPEdge", "x"))
        for intent in intents:
            await journal.intend(intent)
        snapshot = Snapshot({"TLSEdge": Listing(), "BotUser": Listing(complete=False), "TCPEdge": Listing()})
        read = [kinds.get("TLSEdge"), kinds.get("BotUser")]
        assert await settle(intents, snapshot, read, journal) == {}
        assert (list(journal.open), journal.concluded) == (["unread", "cut"], {"absent": None})

    async def test_an_intent_without_an_object_is_concluded_as_none(self) -> None:
        journal, bound = await self.settle_intent(self.bot(), Listing())
        assert (bound, journal.concluded) == ({}, {"i": None})

    async def test_the_id_of_a_response_is_recorded_if_the_object_was_deleted(self) -> None:
        """Its secret may have been delivered."""
        journal, bound = await self.settle_intent(dataclasses.replace(INTENT, object="edgtls_1"), Listing())
        assert (bound, journal.concluded) == ({}, {"i": "edgtls_1"})

    async def test_an_earlier_object_is_not_bound(self) -> None:
        listing = Listing((Live("BotUser", "bot_1", {"id": "bot_1", "name": "berlin"}),))
        journal, bound = await self.settle_intent(self.bot(before=frozenset({"bot_1"})), listing)
        assert (bound, journal.concluded) == ({}, {"i": None})

    async def test_no_intent_is_settled_by_an_incomplete_list(self) -> None:
        journal, bound = await self.settle_intent(self.bot(), Listing(complete=False))
        assert (bound, journal.concluded) == ({}, {})

    async def test_a_child_is_searched_below_its_own_parent(self) -> None:
        intent = Intent(
            "i",
            Address("EventSource", "s"),
            "prod",
            "/event_subscriptions/esb_1/sources",
            identity={"type": "x.v0"},
        )
        listing = Listing(tuple(Live("EventSource", "x.v0", {"type": "x.v0"}, parent) for parent in ("esb_2", "esb_1")))
        _, bound = await self.settle_intent(intent, listing)
        assert bound == {Address("EventSource", "s"): Binding("esb_1/x.v0")}


@dataclass
class SameSecond(MemoryPlatform):
    """Lists with the creation times in `at`, one for each object. The created object is the last one, or the first."""

    at: tuple[str, ...] = ()
    own_first: bool = False

    async def pages(self, path: str, key: str) -> AsyncIterator[Sequence[Mapping[str, Json]]]:
        bodies = [body async for page in super().pages(path, key) for body in page]
        is_own = [body for body in bodies if "metadata" in body]
        others = [body for body in bodies if "metadata" not in body]
        ordered = [*is_own, *others] if self.own_first else [*others, *is_own]
        stamped = [{**body, "created_at": when or None} for body, when in zip(ordered, self.at, strict=False)]
        for start in range(0, len(stamped), 3):
            self.log.append(("PAGE", path))
            yield stamped[start : start + 3]


@pytest.mark.parametrize(
    ("at", "pages"),
    [
        # The whole list is of one second: any of its objects may be the latest.
        (("00:01", "00:01", "00:01", "00:01"), 2),
        # Not sorted by time: the oldest time of the list is unknown.
        (("00:03", "00:01", "00:02", "00:02"), 2),
        # A time without a date.
        (("", "00:03", "00:01", "00:01"), 2),
        (("00:03", "00:02", "", "00:01"), 2),
        # Sorted within one second, in which the order is not documented.
        (("00:01.9", "00:01.8", "00:01.7", "00:01.6"), 2),
    ],
)
async def test_a_search_reads_the_next_page_if_the_list_is_not_ordered(at: tuple[str, ...], pages: int) -> None:
    world = EngineHarness(SameSecond(kinds.every(), at=tuple(time and f"2026-01-01T00:{time}Z" for time in at)))
    world.platform.objects["/edges/tls"] = {f"edgtls_9{n}": {"id": f"edgtls_9{n}"} for n in range(3)}
    world.platform.faults = [Fault("POST", "/edges/tls", RESET, effect=True)]
    known = tuple(("TLSEdge", f"edgtls_9{n}") for n in range(3))
    assert (await only(world, EDGE, unmanaged=known)).outcome is Outcome.ALREADY
    assert world.platform.log.count(("PAGE", "/edges/tls")) == pages
    assert len(world.platform.all("/edges/tls")) == 4


@pytest.mark.parametrize(
    ("at", "known", "pages"),
    [
        (("00:05", "00:04", "00:03", "00:02", "00:01", "00:00"), range(5), 1),
        # Only the third one is known; the next page may have others of the same second.
        (("00:05", "00:04", "00:03", "00:03", "00:01", "00:00"), [3], 2),
        # No object of the first page is older than the create: the next page may have newer ones.
        (("00:05", "00:04", "00:03", "00:02", "00:01", "00:00"), [0, 1, 2], 2),
        (("", "00:04", "00:03", "00:02", "00:01", "00:00"), range(5), 2),
    ],
)
async def test_a_search_ends_at_an_object_that_is_older_than_the_create(
    at: tuple[str, ...], known: Sequence[int], pages: int
) -> None:
    platform = SameSecond(kinds.every(), at=tuple(time and f"2026-01-01T00:{time}Z" for time in at), own_first=True)
    world = EngineHarness(platform)
    platform.objects["/edges/tls"] = {f"edgtls_9{n}": {"id": f"edgtls_9{n}"} for n in range(5)}
    platform.faults = [Fault("POST", "/edges/tls", RESET, effect=True)]
    before = tuple(("TLSEdge", f"edgtls_9{n}") for n in known)
    assert (await only(world, EDGE, unmanaged=before)).outcome is Outcome.ALREADY
    assert platform.log.count(("PAGE", "/edges/tls")) == pages


@dataclass
class Embedding(MemoryPlatform):
    """Returns a parent with the children that `render` adds."""

    render: Any = None

    async def get(self, path: str) -> Json:
        parent = await super().get(path)
        assert isinstance(parent, dict)
        return self.render(parent)


@pytest.mark.parametrize(
    ("render", "lists"),
    [
        (lambda parent: parent, False),
        (lambda parent: {**parent, "sources": ["odd", *parent["sources"]]}, False),
        (lambda parent: {**parent, "sources": []}, False),
        (lambda parent: {**parent, "sources": None}, True),
        (lambda parent: {"id": parent["id"]}, True),
        (lambda parent: ["welcome"], True),
    ],
    ids=["shown", "beside an odd one", "empty", "null", "left out", "no object"],
)
async def test_a_child_is_searched_in_its_parent_and_listed_only_if_the_parent_shows_none(
    render: Any, lists: bool
) -> None:
    world = EngineHarness(Embedding(kinds.every(), render=render))
    world.platform.objects["/event_subscriptions"] = {"esb_0001": {"id": "esb_0001"}}
    world.platform.faults = [Fault("POST", "/event_subscriptions", RESET, effect=True)]
    ended = await only(world, SOURCE)
    is_empty = not lists and render({"id": "esb_0001", "sources": [1]})["sources"] == []
    assert ended.outcome is (Outcome.DONE if is_empty else Outcome.ALREADY)
    gets = [path for _, path in world.platform.requests("GET")]
    parent = "/event_subscriptions/esb_0001"
    assert dict.fromkeys(gets) == dict.fromkeys([parent, f"{parent}/sources"] if lists else [parent])


INTENT = Intent("i", EDGE.address, "prod", "/edges/tls")


@pytest.mark.parametrize(
    ("metadata", "is_own"),
    [
        (owners.write("mine", Owner("prod", EDGE.address, "i")), True),
        (owners.write("", Owner("prod", EDGE.address, "ii")), False),
        ("i", False),
        ("", False),
        (None, False),
        (["i"], False),
    ],
)
def test_an_object_with_owner_record_is_identified_by_its_intent(metadata: Json, is_own: bool) -> None:
    body = {"id": "edgtls_1", "metadata": metadata}
    assert is_created_by(kinds.get("TLSEdge"), body, INTENT) is is_own
    assert is_created_by(kinds.get("TLSEdge"), {"id": "edgtls_1"}, INTENT) is False


@pytest.mark.parametrize(
    ("body", "is_own"),
    [
        ({"type": "a.v0"}, True),
        ({"type": "a.v0", "subscription_id": "esb_1", "uri": "x"}, True),
        ({"type": "b.v0"}, False),
        ({}, False),
    ],
)
def test_an_object_without_owner_record_is_identified_by_its_natural_key(body: dict[str, Json], is_own: bool) -> None:
    intent = Intent("i", SOURCE.address, "prod", "/x", identity={"type": "a.v0"})
    assert is_created_by(kinds.get("EventSource"), body, intent) is is_own


def test_an_intent_is_unsettled_until_its_object_is_listed() -> None:
    record = owners.write("", Owner("prod", EDGE.address, "i"))
    listing = Snapshot(
        {
            "TLSEdge": Listing((Live("TLSEdge", "edgtls_1", {"id": "edgtls_1", "metadata": record}),)),
            "BotUser": Listing((Live("BotUser", "bot_1", {"id": "bot_1", "name": "berlin"}),)),
        }
    )
    other = dataclasses.replace(INTENT, id="other")
    bot = Intent("b", BOT.address, "prod", "/bot_users", identity={"name": "berlin"})
    paris = dataclasses.replace(bot, id="p", identity={"name": "paris"})
    elsewhere = dataclasses.replace(bot, id="e", path="/service_users")
    unsettled = find_unsettled([INTENT, other, bot, paris, elsewhere], listing, kinds.every())
    assert unsettled == [other, paris, elsewhere]
    assert find_unsettled([INTENT, other], listing, [kinds.get("BotUser")]) == []


@pytest.mark.parametrize(
    ("lost", "call", "lists"),
    [
        ([Lost("reset")], EDGE, 2),
        ([Lost("500", status=500)], EDGE, 1),
        ([Lost("504", status=504), Lost("500", status=500)], EDGE, 3),
        ([Lost("500", status=500), Lost("504", status=504)], EDGE, 3),
        ([Lost("500", status=500), Transient("503", status=503)], EDGE, 2),
        ([Transient("503", status=503)], EDGE, 0),
        ([Lost("reset")], BOT, 1),
    ],
)
async def test_a_create_is_searched_while_an_earlier_request_may_take_effect(
    world: EngineHarness, lost: list[Failure], call: Call, lists: int
) -> None:
    """After each lost request before its retry, and after the create if one may still be applied. A second object
    of a kind without owner records could not be distinguished from another one of that name."""
    world.platform.faults = [Fault("POST", "/", failure) for failure in lost]
    assert (await only(world, call)).outcome is Outcome.DONE
    assert len(world.platform.requests("GET")) == lists
    # Each lost request keeps its intent to itself.
    assert len(world.journal.concluded) == 1 + sum(isinstance(failure, Lost) for failure in lost)
    assert (min(world.clock.slept) >= RetryPolicy().lag) is any(isinstance(failure, Lost) for failure in lost)


class Late(MemoryPlatform):
    """Applies the first create after the second one, immediately before the second list."""

    first: Mapping[str, Json] | None = None

    async def send(
        self, method: str, path: str, body: Mapping[str, Json] | None = None, *, check: Check | None = None
    ) -> Json:
        if method == "POST" and self.first is None:
            self.first = body
            raise Lost("gateway timeout", status=504)
        return await super().send(method, path, body, check=check)

    async def pages(self, path: str, key: str) -> AsyncIterator[Sequence[Mapping[str, Json]]]:
        if self.objects.get(path):
            self._create(path, dict(self.first or {}))
        async for page in super().pages(path, key):
            yield page


async def test_a_duplicate_that_appears_after_the_response_is_deleted() -> None:
    world = EngineHarness(Late(kinds.every()))
    ended = await only(world, EDGE)
    assert (ended.outcome, ended.id) == (Outcome.DONE, "edgtls_0001")
    assert world.platform.requests("DELETE") == [("DELETE", "/edges/tls/edgtls_0002")]
    assert list(world.journal.concluded.values()) == [None, "edgtls_0001"]


@pytest.mark.parametrize("failure", [Conflict("no", status=409), Refused("no", status=400), Gone("no", status=404)])
async def test_a_refused_create_is_not_searched(world: EngineHarness, failure: Failure) -> None:
    world.platform.faults = [Fault("POST", "/edges/tls", failure)]
    ended = await only(world, EDGE)
    assert (ended.outcome, ended.why, world.platform.requests("GET")) == (Outcome.FAILED, "no", [])
    assert (world.journal.open, list(world.journal.concluded.values())) == ({}, [None])


async def test_a_create_that_is_never_accepted_leaves_no_open_intent(world: EngineHarness) -> None:
    world.platform.faults = [Fault("POST", "/edges/tls", Transient("busy", status=503), times=99)]
    ended = await only(world, EDGE)
    assert (ended.outcome, ended.why, world.platform.requests("GET")) == (Outcome.FAILED, "busy", [])
    assert len(world.platform.requests("POST")) == RetryPolicy().attempts
    assert (world.journal.open, list(world.journal.concluded.values())) == ({}, [None])


async def test_the_higher_id_of_two_objects_created_at_the_same_time_is_deleted(world: EngineHarness) -> None:
    """The list returns the newer one first."""
    world.platform.stale = 1
    world.platform._first["/edges/tls"] = []
    world.platform.faults = [Fault("POST", "/edges/tls", RESET, effect=True, times=2)]
    ended = await only(world, EDGE)
    assert (ended.outcome, ended.id) == (Outcome.ALREADY, "edgtls_0001")
    assert ended.why == "its response was lost; the object was found in a new list"


class Odd(MemoryPlatform):
    """Applies its first create, and responds with `odd`."""

    odd: Json = None

    async def send(self, *request: Any, **options: Any) -> Json:
        answer = await super().send(*request, **options)
        return self.odd if self.count == 1 else answer


@pytest.mark.parametrize("odd", [None, ["edgtls_0001"], {"id": 7}, {"uri": "x"}], ids=str)
async def test_a_create_is_searched_after_each_response_without_its_id(odd: Json) -> None:
    platform = Odd(kinds.every())
    platform.odd = odd
    world = EngineHarness(platform)
    ended = await only(world, EDGE)
    assert (ended.outcome, ended.id) == (Outcome.ALREADY, "edgtls_0001")
    assert len(platform.requests("POST")) == 1


async def test_a_create_without_a_record_is_not_bound(world: EngineHarness) -> None:
    ended = await only(world, replace(BOT, owner=None))
    assert (ended.outcome, ended.id) == (Outcome.DONE, "bot_0001")
    assert (world.journal.bindings, list(world.journal.concluded.values())) == ({}, ["bot_0001"])


@pytest.mark.parametrize(
    ("status", "late"), [(0, True), (502, True), (504, True), (408, False), (500, False), (503, False)]
)
def test_only_a_response_of_the_platforms_own_server_is_final(status: int, late: bool) -> None:
    assert may_still_take_effect(Lost("lost", status=status)) is late
