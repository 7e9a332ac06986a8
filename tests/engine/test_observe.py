"""A refresh: reading the account."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any

import pytest

from reconciler import kinds
from reconciler.engine.observe import ById, collection_path, observe
from reconciler.engine.ports import Failure, Gone, Refused, Transient
from reconciler.model.address import Address
from reconciler.model.kind import Kind
from reconciler.model.snapshot import Binding, Listing, Live
from reconciler.model.value import Json
from reconciler.project.settings.project_file import Limits


class Scripted:
    """Answers from a table of pages and objects; an exception in it is raised."""

    def __init__(self, pages: Mapping[str, Sequence[Any]], objects: Mapping[str, Any] | None = None) -> None:
        self._pages = pages
        self._objects = objects or {}
        self.requests: list[str] = []

    async def get(self, path: str) -> Json:
        self.requests.append(path)
        answer = self._objects.get(path, Gone("not found", status=404))
        if isinstance(answer, Exception):
            raise answer
        return answer

    async def pages(self, path: str, key: str) -> AsyncIterator[Sequence[Mapping[str, Json]]]:
        self.requests.append(f"{path} {key}")
        for page in self._pages.get(path, [Gone("not found", status=404)]):
            if isinstance(page, Exception):
                raise page
            yield page


def some(*names: str) -> list[Kind]:
    return [kinds.get(name) for name in names]


async def test_one_list_per_collection_and_no_get_per_object() -> None:
    reader = Scripted({"/edges/tls": [[{"id": "edgtls_2"}, {"id": "edgtls_1"}]], "/bot_users": [[]]})
    snapshot = await observe(reader, some("TLSEdge", "BotUser"))
    assert sorted(reader.requests) == ["/bot_users bot_users", "/edges/tls tls_edges"]
    assert [live.id for live in snapshot.of("TLSEdge").objects] == ["edgtls_2", "edgtls_1"]
    assert snapshot.of("BotUser").complete


async def test_children_are_read_from_the_body_of_their_parent() -> None:
    reader = Scripted({"/edges/https": [[{"id": "edghts_1", "routes": [{"id": "edghtsrt_1", "match": "/"}]}]]})
    snapshot = await observe(reader, some("HTTPSEdgeRoute"))
    (route,) = snapshot.of("HTTPSEdgeRoute").objects
    assert (route.id, route.parent_id) == ("edghtsrt_1", "edghts_1")
    assert reader.requests == ["/edges/https https_edges"]
    assert list(snapshot.listings) == ["HTTPSEdgeRoute"]


async def test_children_are_listed_if_the_parent_does_not_show_them() -> None:
    reader = Scripted(
        {
            "/event_subscriptions": [
                [
                    {"id": "esb_1"},
                    {"id": "esb_2", "sources": [{"type": "b.v0"}]},
                    {"id": "esb_3", "sources": []},
                    {"id": "esb_4"},
                ]
            ],
            "/event_subscriptions/esb_1/sources": [[{"type": "a.v0"}]],
            "/event_subscriptions/esb_4/sources": [[{"type": "c.v0"}]],
        }
    )
    snapshot = await observe(reader, some("EventSubscription", "EventSource"))
    assert [(live.kind, live.id, live.parent_id) for live in snapshot.of("EventSource").objects] == [
        ("EventSource", "a.v0", "esb_1"),
        ("EventSource", "b.v0", "esb_2"),
        ("EventSource", "c.v0", "esb_4"),
    ]
    assert len(reader.requests) == 3


async def test_a_kind_with_fixed_values_lists_only_its_own_objects() -> None:
    reader = Scripted({"/endpoints": [[{"id": "ep_1", "type": "cloud"}, {"id": "ep_2", "type": "ephemeral"}]]})
    snapshot = await observe(reader, some("CloudEndpoint"))
    assert [live.id for live in snapshot.of("CloudEndpoint").objects] == ["ep_1"]


@pytest.mark.parametrize("failure", [Transient("the platform is away"), Refused("in a circle", status=400)])
async def test_a_page_that_fails_leaves_the_list_incomplete(failure: Failure) -> None:
    reader = Scripted({"/edges/tls": [[{"id": "edgtls_2"}], failure], "/bot_users": [[]]})
    snapshot = await observe(reader, some("TLSEdge", "BotUser"))
    listing = snapshot.of("TLSEdge")
    assert (listing.complete, listing.why, len(listing.objects)) == (False, str(failure), 1)
    assert not listing.denied
    assert snapshot.of("BotUser").complete


async def test_a_collection_that_does_not_exist_is_unknown_and_not_empty() -> None:
    snapshot = await observe(Scripted({}), some("TLSEdge", "HTTPSEdgeRoute"))
    assert snapshot.of("TLSEdge").why == "the platform does not offer /edges/tls"
    assert not snapshot.of("HTTPSEdgeRoute").complete


async def test_a_list_with_an_object_without_id_is_incomplete() -> None:
    snapshot = await observe(Scripted({"/bot_users": [[{"name": "x"}]]}), some("BotUser"))
    assert "has no id" in snapshot.of("BotUser").why


async def test_an_invalid_key_ends_the_refresh() -> None:
    reader = Scripted({"/edges/tls": [[]], "/bot_users": [Refused("bad key", status=401)]})
    with pytest.raises(Refused, match="bad key"):
        await observe(reader, some("TLSEdge", "BotUser"))


async def test_a_key_that_may_read_nothing_ends_the_refresh() -> None:
    denied = Refused("bad key", status=403)
    with pytest.raises(Refused, match="bad key"):
        await observe(Scripted({"/edges/tls": [denied], "/bot_users": [denied]}), some("TLSEdge", "BotUser"))


@pytest.mark.parametrize("how", ["expected", "bindings"])
async def test_a_key_that_may_not_read_a_declared_kind_ends_the_refresh(how: str) -> None:
    reader = Scripted({"/edges/tls": [[]], "/bot_users": [Refused("not yours", status=403)]})
    wanted: Any = {Address("BotUser", "a"): Binding("bot_1")}
    with pytest.raises(Refused, match="not yours"):
        await observe(reader, some("TLSEdge", "BotUser"), **{how: wanted})


async def test_an_undeclared_kind_that_the_key_may_not_read_is_unknown() -> None:
    reader = Scripted({"/edges/tls": [[]], "/bot_users": [Refused("not yours", status=403)]})
    snapshot = await observe(reader, some("TLSEdge", "BotUser"), expected=[Address("TLSEdge", "a")])
    assert snapshot.of("BotUser") == Listing(complete=False, why="not yours", denied=True)
    assert snapshot.of("TLSEdge") == Listing()


@pytest.mark.parametrize(
    ("failure", "denied"),
    [(Refused("not yours", status=403), True), (Transient("away"), False)],
    ids=["denied", "away"],
)
@pytest.mark.parametrize("where", ["/event_subscriptions", "/event_subscriptions/esb_1/sources"])
async def test_children_that_cannot_be_read_are_unknown(failure: Failure, denied: bool, where: str) -> None:
    sources = {f"/event_subscriptions/esb_{n}/sources": [[{"type": "a.v0"}]] for n in (1, 2)}
    pages: dict[str, list[Any]] = {
        "/event_subscriptions": [[{"id": "esb_1"}, {"id": "esb_2"}]],
        **sources,
        "/bot_users": [[]],
    }
    snapshot = await observe(Scripted(pages | {where: [failure]}), some("EventSource", "BotUser"))
    listing = snapshot.of("EventSource")
    assert (listing.complete, listing.why, listing.denied) == (False, str(failure), denied)


async def test_only_declared_objects_that_a_complete_list_lacks_are_read_by_id() -> None:
    names = ("listed", "absent", "undeclared")
    bindings = {Address("BotUser", name): Binding(f"bot_{name}") for name in names}
    expected = [Address("BotUser", name) for name in names[:2]]
    for page in ([[{"id": "bot_listed"}]], [[{"id": "bot_listed"}], Transient("away")]):
        reader = Scripted({"/bot_users": page})
        await observe(reader, some("BotUser"), bindings=bindings, expected=expected)
        assert reader.requests[1:] == (["/bot_users/bot_absent"] if len(page) == 1 else [])


async def test_ids_in_paths_are_one_segment_each() -> None:
    address = Address("EventSource", "s")
    reader = Scripted({"/event_subscriptions": [[{"id": "e/1"}, {"id": "e/2", "sources": []}]]})
    await observe(reader, some("EventSource"), bindings={address: Binding("e/1/a b.v0")}, expected=[address])
    assert reader.requests[1:] == ["/event_subscriptions/e%2F1/sources sources"]
    reader = Scripted({"/event_subscriptions": [[{"id": "e/1", "sources": []}]]})
    await observe(reader, some("EventSource"), bindings={address: Binding("e/1/a b.v0")}, expected=[address])
    assert reader.requests[1:] == ["/event_subscriptions/e%2F1/sources/a%20b.v0"]


async def test_an_object_on_two_pages_is_listed_once() -> None:
    reader = Scripted({"/bot_users": [[{"id": "bot_2"}, {"id": "bot_1"}], [{"id": "bot_1", "name": "fresher"}]]})
    snapshot = await observe(reader, some("BotUser"))
    assert [live.id for live in snapshot.of("BotUser").objects] == ["bot_2", "bot_1"]
    assert snapshot.of("BotUser").objects[1].body["name"] == "fresher"


ROUTE = "/edges/https/edghts_1/routes/edghtsrt_9"
UNSET: dict[str, Any] = {
    f"{ROUTE}/saml": None,
    f"{ROUTE}/webhook_verification": {},
    f"{ROUTE}/ip_restriction": {"enabled": None, "ip_policies": None},
    f"{ROUTE}/traffic_policy": Gone("Resource not found", status=404),
    f"{ROUTE}/backend": {"enabled": True, "backend": {"id": "bkdfo_1"}},
}


async def test_a_route_by_id_is_read_module_by_module() -> None:
    reader = Scripted({"/edges/https": [[]]}, UNSET)
    by_id = {"HTTPSEdgeRoute": [("edghtsrt_9", "edghts_1")]}
    snapshot = await observe(reader, some("HTTPSEdgeRoute"), by_id=by_id)
    (route,) = snapshot.of("HTTPSEdgeRoute").objects
    assert (route.id, route.parent_id) == ("edghtsrt_9", "edghts_1")
    assert {name for name, value in route.body.items() if value is not None} == {"id", "backend"}
    assert set(route.body) == {"id", *kinds.get("HTTPSEdgeRoute").modules_by_id}


async def test_a_route_in_the_body_of_its_edge_is_not_read_again() -> None:
    reader = Scripted({"/edges/https": [[{"id": "edghts_1", "routes": [{"id": "edghtsrt_9"}]}]]})
    await observe(reader, some("HTTPSEdgeRoute"), by_id={"HTTPSEdgeRoute": [("edghtsrt_9", "edghts_1")]})
    assert reader.requests == ["/edges/https https_edges"]


@pytest.mark.parametrize(
    ("answer", "why"), [(Transient("away"), "away"), ("<html>", "is not a module")], ids=["no answer", "a page"]
)
async def test_a_module_that_cannot_be_read_leaves_the_list_incomplete(answer: Any, why: str) -> None:
    reader = Scripted({"/edges/https": [[]]}, UNSET | {f"{ROUTE}/saml": answer})
    by_id = {"HTTPSEdgeRoute": [("edghtsrt_9", "edghts_1")]}
    snapshot = await observe(reader, some("HTTPSEdgeRoute"), by_id=by_id)
    listing = snapshot.of("HTTPSEdgeRoute")
    assert (listing.objects, listing.complete, why in listing.why) == ((), False, True)


async def test_a_response_with_another_id_is_not_the_bound_object() -> None:
    reader = Scripted({"/bot_users": [[]]}, {"/bot_users/bot_1": {"id": "bot_2", "name": "berlin"}})
    address = Address("BotUser", "b")
    snapshot = await observe(reader, some("BotUser"), bindings={address: Binding("bot_1")}, expected=[address])
    listing = snapshot.of("BotUser")
    assert (listing.objects, listing.complete) == ((), False)
    assert "is not that object" in listing.why


@pytest.mark.parametrize(
    ("failure", "ends"),
    [(Refused("not yours", status=403), True), (Refused("odd", status=400), False), (Transient("away"), False)],
    ids=["denied", "refused", "away"],
)
async def test_a_bound_object_that_cannot_be_read_is_not_deleted(failure: Failure, ends: bool) -> None:
    reader = Scripted({"/bot_users": [[]]}, {"/bot_users/bot_1": failure})
    address = Address("BotUser", "b")
    reading = observe(reader, some("BotUser"), bindings={address: Binding("bot_1")}, expected=[address])
    if ends:
        with pytest.raises(Refused, match="not yours"):
            await reading
        return
    listing = (await reading).of("BotUser")
    assert (listing.objects, listing.complete, listing.why) == ((), False, str(failure))


async def test_all_lists_are_read_at_once_and_at_most_the_allowed_number() -> None:
    running, most = 0, 0

    class Counting(Scripted):
        async def pages(self, path: str, key: str) -> AsyncIterator[Sequence[Mapping[str, Json]]]:
            nonlocal running, most
            running += 1
            most = max(most, running)
            await asyncio.sleep(0)
            running -= 1
            yield []

        async def get(self, path: str) -> Json:
            nonlocal running, most
            running += 1
            most = max(most, running)
            await asyncio.sleep(0)
            running -= 1
            raise Gone("not found", status=404)

    await observe(Counting({}), kinds.list_planned(), concurrency=Limits().concurrency)
    assert most == len({(kind.path, kind.list_key) for kind in kinds.list_planned() if kind.parent is None})
    addresses = [Address("BotUser", f"b{number}") for number in range(9)]
    bindings = {address: Binding(f"bot_{address.name}") for address in addresses}
    by_id = {"HTTPSEdgeRoute": [("edghtsrt_9", "edghts_1"), ("edghtsrt_8", "edghts_1")]}
    for limit in (1, 3):
        most = 0
        reader = Counting({})
        await observe(reader, kinds.every(), bindings=bindings, expected=addresses, by_id=by_id, concurrency=limit)
        assert most == limit


async def test_the_snapshot_contains_bindings_and_receipts() -> None:
    bindings = {Address("BotUser", "b"): Binding("bot_1")}
    receipts = frozenset({"intent"})
    snapshot = await observe(Scripted({"/bot_users": [[]]}), some("BotUser"), bindings=bindings, receipts=receipts)
    assert (snapshot.bindings, snapshot.receipts) == (bindings, receipts)
    snapshot = await observe(Scripted({"/bot_users": [[]]}), some("BotUser"))
    assert (snapshot.bindings, snapshot.receipts) == ({}, frozenset())


async def test_a_bound_object_that_the_list_lacks_is_read_by_id() -> None:
    """Else it would be created a second time."""
    reader = Scripted(
        {"/bot_users": [[{"id": "bot_2"}]], "/event_subscriptions": [[{"id": "esb_1", "sources": []}]]},
        {
            "/bot_users/bot_1": {"id": "bot_1", "name": "berlin"},
            "/event_subscriptions/esb_1/sources/x.v0": {"type": "x.v0"},
        },
    )
    bindings = {
        Address("BotUser", "berlin"): Binding("bot_1"),
        Address("BotUser", "gone"): Binding("bot_9"),
        Address("EventSource", "x"): Binding("esb_1/x.v0"),
    }
    snapshot = await observe(reader, some("BotUser", "EventSource"), bindings=bindings, expected=bindings)
    assert snapshot.of("BotUser") == Listing(
        (Live("BotUser", "bot_2", {"id": "bot_2"}), Live("BotUser", "bot_1", {"id": "bot_1", "name": "berlin"}))
    )
    assert snapshot.of("EventSource") == Listing((Live("EventSource", "x.v0", {"type": "x.v0"}, "esb_1"),))
    assert sorted(reader.requests) == [
        "/bot_users bot_users",
        "/bot_users/bot_1",
        "/bot_users/bot_9",
        "/event_subscriptions event_subscriptions",
        "/event_subscriptions/esb_1/sources/x.v0",
    ]


@pytest.mark.parametrize("body", [None, ["bot_1"], {"id": 1}, {}])
async def test_a_response_without_the_bound_object_leaves_the_list_incomplete(body: Any) -> None:
    reader = Scripted({"/bot_users": [[{"id": "bot_2"}]]}, {"/bot_users/bot_1": body})
    address = Address("BotUser", "b")
    snapshot = await observe(reader, some("BotUser"), bindings={address: Binding("bot_1")}, expected=[address])
    listing = snapshot.of("BotUser")
    assert [live.id for live in listing.objects] == ["bot_2"]
    assert (listing.complete, listing.why) == (False, "the response to GET /bot_users/bot_1 is not that object")


async def test_modules_of_each_unlisted_declared_route_are_read_once() -> None:
    reader = Scripted({"/edges/https": [[{"id": "edghts_1", "routes": [{"id": "edghtsrt_1"}]}]], "/bot_users": [[]]})
    ids: list[tuple[str, str | None]] = [
        ("edghtsrt_1", "edghts_1"),
        ("edghtsrt_9", "edghts_1"),
        ("edghtsrt_9", "edghts_1"),
        ("edghtsrt_8", None),
    ]
    by_id: ById = {"HTTPSEdgeRoute": ids, "BotUser": [("bot_1", "x")], "TLSEdge": [("edgtls_1", "x")]}
    snapshot = await observe(reader, some("HTTPSEdgeRoute", "BotUser"), by_id=by_id)
    modules = kinds.get("HTTPSEdgeRoute").modules_by_id
    assert reader.requests[2:] == [f"{ROUTE}/{name}" for name in modules]
    listing = snapshot.of("HTTPSEdgeRoute")
    unset = Live("HTTPSEdgeRoute", "edghtsrt_9", {"id": "edghtsrt_9", **dict.fromkeys(modules)}, "edghts_1")
    listed = Live("HTTPSEdgeRoute", "edghtsrt_1", {"id": "edghtsrt_1"}, "edghts_1")
    assert listing == Listing((listed, unset))
    assert list(snapshot.listings) == ["HTTPSEdgeRoute", "BotUser"]
    assert snapshot.of("BotUser") == Listing()


async def test_an_incomplete_list_is_incomplete_after_routes_are_read_by_id() -> None:
    reader = Scripted({"/edges/https": [Transient("away")]}, UNSET | {f"{ROUTE}/saml": Transient("later")})
    by_id = {"HTTPSEdgeRoute": [("edghtsrt_9", "edghts_1")]}
    listing = (await observe(reader, some("HTTPSEdgeRoute"), by_id=by_id)).of("HTTPSEdgeRoute")
    assert (listing.complete, listing.why) == (False, "away")
    reader = Scripted({"/edges/https": [Transient("away")]}, UNSET)
    listing = (await observe(reader, some("HTTPSEdgeRoute"), by_id=by_id)).of("HTTPSEdgeRoute")
    assert (listing.complete, listing.why, len(listing.objects)) == (False, "away", 1)


@pytest.mark.parametrize(("status", "ends"), [(401, True), (403, True), (400, False)])
async def test_a_key_that_may_not_read_a_module_ends_the_refresh(status: int, ends: bool) -> None:
    reader = Scripted({"/edges/https": [[]]}, UNSET | {f"{ROUTE}/saml": Refused("not yours", status=status)})
    reading = observe(reader, some("HTTPSEdgeRoute"), by_id={"HTTPSEdgeRoute": [("edghtsrt_9", "edghts_1")]})
    if ends:
        with pytest.raises(Refused, match="not yours"):
            await reading
        return
    listing = (await reading).of("HTTPSEdgeRoute")
    assert (listing.complete, listing.why, listing.objects) == (False, "not yours", ())


@pytest.mark.parametrize("odd", [{"id": 7}, {"id": ""}, {"id": None}, "bot_9", None])
async def test_a_malformed_object_hides_no_other_object(odd: Any) -> None:
    reader = Scripted({"/bot_users": [[{"id": "bot_2"}, odd, {"id": "bot_1"}], Transient("away")]})
    listing = (await observe(reader, some("BotUser"))).of("BotUser")
    assert [live.id for live in listing.objects] == ["bot_2", "bot_1"]
    assert (listing.complete, listing.why) == (False, "away")
    listing = (await observe(Scripted({"/bot_users": [[odd, {"id": "bot_1"}]]}), some("BotUser"))).of("BotUser")
    assert (listing.complete, listing.why) == (False, "an object in the platform's list of bot_users has no id")


async def test_an_invalid_key_ends_the_other_lists_at_once() -> None:
    ended: list[str] = []

    class Hanging(Scripted):
        async def pages(self, path: str, key: str) -> AsyncIterator[Sequence[Mapping[str, Json]]]:
            if path == "/bot_users":
                await asyncio.sleep(0)
                raise Refused("bad key", status=401)
            try:
                await asyncio.Event().wait()
            finally:
                ended.append(path)
            yield []

    with pytest.raises(Refused, match="bad key"):
        await observe(Hanging({}), some("TLSEdge", "BotUser", "Vault"))
    assert sorted(ended) == ["/edges/tls", "/vaults"]


async def test_the_reported_reason_is_that_of_the_first_unreadable_children() -> None:
    denied = Refused("not yours", status=403)
    pages: dict[str, list[Any]] = {
        "/event_subscriptions": [[{"id": "esb_1", "sources": [{"type": "a.v0"}]}, {"id": "esb_2"}, {"id": "esb_3"}]],
        "/event_subscriptions/esb_2/sources": [[{"type": "b.v0"}], Transient("away")],
        "/event_subscriptions/esb_3/sources": [denied],
        "/bot_users": [[]],
    }
    listing = (await observe(Scripted(pages), some("EventSource", "BotUser"))).of("EventSource")
    assert [live.locator for live in listing.objects] == ["esb_1/a.v0", "esb_2/b.v0"]
    assert (listing.complete, listing.why, listing.denied) == (False, "away", False)


@pytest.mark.parametrize(
    ("kind", "parent", "path"),
    [
        ("TLSEdge", None, "/edges/tls"),
        ("TLSEdge", "x", "/edges/tls"),
        ("HTTPSEdgeRoute", "e/1", "/edges/https/e%2F1/routes"),
        ("HTTPSEdgeRoute", None, "/edges/https/{edge_id}/routes"),
    ],
)
def test_the_path_of_a_collection_names_the_parent(kind: str, parent: str | None, path: str) -> None:
    assert collection_path(kinds.get(kind), parent) == path


async def test_a_404_on_a_later_page_does_not_mean_that_the_collection_is_not_offered() -> None:
    reader = Scripted({"/edges/tls": [[{"id": "edgtls_2"}], Gone("no such page (status 404)", status=404)]})
    listing = (await observe(reader, some("TLSEdge"))).of("TLSEdge")
    assert (listing.complete, listing.is_offered, len(listing.objects)) == (False, True, 1)
    assert listing.why == "a later page of /edges/tls: no such page (status 404)"


async def test_children_are_offered_although_a_parent_was_deleted_during_the_refresh() -> None:
    sources = [[{"type": "ip_policy_created.v0"}]]
    reader = Scripted(
        {
            "/event_subscriptions": [[{"id": "esb_1"}, {"id": "esb_2"}]],
            "/event_subscriptions/esb_2/sources": sources,
        }
    )
    listing = (await observe(reader, some("EventSource"))).of("EventSource")
    assert (listing.complete, listing.is_offered) == (False, True)
    assert listing.why == (
        "/event_subscriptions/esb_1/sources: not found; was the EventSubscription deleted meanwhile?"
    )
    nowhere = Scripted({"/event_subscriptions": [[{"id": "esb_1"}, {"id": "esb_2"}]]})
    assert not (await observe(nowhere, some("EventSource"))).of("EventSource").is_offered
