"""Facts about an account: objects by id and by values."""

from __future__ import annotations

from reconciler.health.facts import Facts
from reconciler.model.health import State
from reconciler.model.snapshot import Snapshot
from tests.health.accounts import build_facts


def test_objects_are_found_by_a_value_inside_a_list() -> None:
    first = {"id": "esb_1", "destinations": [{"id": "ed_1"}, {"id": "ed_2"}]}
    facts = build_facts({"EventSubscription": [first, {"id": "esb_2", "destinations": [None, "ed_1"]}]})

    assert facts.list_where("EventSubscription", ("destinations", "id"), "ed_2") == [first]
    assert facts.list_where("EventSubscription", ("destinations", "id"), "ed_3") == ()


def test_an_object_of_an_incomplete_list_may_exist() -> None:
    missing = build_facts({}).health_of(["TLSCertificate"], "cert_1")
    unknown = build_facts({}, unread=["TLSCertificate"]).health_of(["TLSCertificate"], "cert_1")

    assert (missing.state, missing.reason) == (State.DEGRADED, "cert_1 does not exist")
    assert (unknown.state, unknown.reason) == (State.UNKNOWN, "cert_1 could not be read")


def test_facts_name_the_lists_that_they_lack() -> None:
    facts = Facts(Snapshot({}), 0.0)

    facts.list_where("Tunnel", ("labels", "app"), "shop")

    assert facts.unread == {"Tunnel"}
    assert not facts.is_complete("Tunnel")
