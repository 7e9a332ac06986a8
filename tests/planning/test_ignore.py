"""What `lifecycle.ignore` leaves to others."""

from __future__ import annotations

from typing import Any

import pytest

from reconciler import kinds
from reconciler.model.change import ChangedBy
from reconciler.model.value import Value
from reconciler.planning.comparing.ignore import find_undeclared_secrets, overlay_live, prune
from tests.planning.builders import change_of, declare, fields, live, make_plan, record, secret, snapshot


def test_an_ignored_field_is_not_compared() -> None:
    was = {"description": "x"}
    edge = live("TLSEdge", "e", {"description": "by hand"}, owner=record("TLSEdge/a", was))
    assert make_plan(declare("TLSEdge/a", was, ignore=("description",)), seen=snapshot(edge)).changes == ()


def test_an_ignored_field_is_not_sent_with_another() -> None:
    was = {"description": "x"}
    edge = live("TLSEdge", "e", {"description": "by hand"}, owner=record("TLSEdge/a", was))
    plan = make_plan(
        declare("TLSEdge/a", {**was, "hostports": ["a.x:443"]}, ignore=("description",)), seen=snapshot(edge)
    )
    assert (plan.calls[0].body or {}).keys() == {"hostports"}


def test_an_ignored_field_is_no_part_of_the_record_of_an_object_that_is_adopted_as_it_is() -> None:
    edge = live("TLSEdge", "e", {"description": "theirs", "hostports": ["a.x:443"]})
    declared = {"description": "ours", "hostports": ["a.x:443"]}
    plan = make_plan(declare("TLSEdge/e", declared, id="e", adopt=True, ignore=["description"]), seen=snapshot(edge))
    (call,) = plan.calls
    assert call.owner is not None
    assert (call.body, list(call.owner.applied)) == ({}, ["hostports"])


def test_an_ignored_field_is_set_when_the_object_is_made() -> None:
    plan = make_plan(declare("TLSEdge/a", {"description": "x"}, ignore=("description",)))
    assert (plan.calls[0].body or {})["description"] == "x"


def test_an_ignored_module_that_others_attached_is_left_attached() -> None:
    edge = live("TLSEdge", "e", {"backend": {"backend": {"id": "b"}}}, owner=record("TLSEdge/a", {}))
    assert make_plan(declare("TLSEdge/a", ignore=("backend",)), seen=snapshot(edge)).changes == ()


def test_ignored_metadata_stays_as_it_is_when_the_record_is_written() -> None:
    edge = live("TLSEdge", "e", {"metadata": "by hand"}, owner=record("TLSEdge/a", {}))
    plan = make_plan(declare("TLSEdge/a", {"description": "x"}, ignore=("metadata",)), seen=snapshot(edge))
    assert plan.calls[0].owner is not None
    assert plan.calls[0].owner.text == "by hand"


def test_ignored_metadata_goes_along_to_the_object_that_replaces_it() -> None:
    authority = live(
        "CertificateAuthority", "ca_1", {"ca_pem": "OLD", "metadata": "by hand"}, owner=record("CertificateAuthority/a")
    )
    plan = make_plan(
        declare("CertificateAuthority/a", {"ca_pem": "NEW"}, ignore=("metadata",)), seen=snapshot(authority)
    )
    assert plan.calls[0].owner is not None
    assert plan.calls[0].owner.text == "by hand"


MODULE = {"ip_restriction": {"ip_policy_ids": ["p"], "enabled": True}}


def test_an_ignored_part_of_a_module_is_not_compared() -> None:
    now = {"ip_restriction": {"enabled": False, "ip_policies": [{"id": "p"}]}}
    edge = live("TLSEdge", "e", now, owner=record("TLSEdge/a", MODULE))
    assert (
        make_plan(declare("TLSEdge/a", MODULE, ignore=("ip_restriction.enabled",)), seen=snapshot(edge)).changes == ()
    )


def test_an_ignored_part_keeps_its_live_value_when_the_module_is_written() -> None:
    now = {"ip_restriction": {"enabled": False, "ip_policies": [{"id": "q"}]}}
    edge = live("TLSEdge", "e", now, owner=record("TLSEdge/a", MODULE))
    plan = make_plan(declare("TLSEdge/a", MODULE, ignore=("ip_restriction.enabled",)), seen=snapshot(edge))
    sent = plan.calls[0].body or {}
    assert sent.get("ip_restriction", sent) == {"ip_policy_ids": ["p"], "enabled": False}


def test_an_ignored_part_of_a_module_that_is_not_there_is_set_with_the_rest() -> None:
    edge = live("TLSEdge", "e", {}, owner=record("TLSEdge/a", MODULE))
    plan = make_plan(declare("TLSEdge/a", MODULE, ignore=("ip_restriction.enabled",)), seen=snapshot(edge))
    assert (plan.calls[0].body or {}) == MODULE["ip_restriction"]


def test_an_ignored_choice_of_the_platform_survives_a_change_beside_it() -> None:
    now = {"tls_termination": {"enabled": False, "terminate_at": "edge", "min_version": "1.3"}}
    edge = live("TLSEdge", "e", now, owner=record("TLSEdge/a", {"tls_termination": {}}))
    plan = make_plan(
        declare("TLSEdge/a", {"tls_termination": {}}, ignore=("tls_termination.min_version",)), seen=snapshot(edge)
    )
    sent = plan.calls[0].body or {}
    assert sent.get("tls_termination", sent)["min_version"] == "1.3"


def test_an_ignored_label_is_left_as_it_is() -> None:
    was = {"labels": {"app": "a", "zone": "1"}}
    backend = live(
        "TunnelGroupBackend", "b", {"labels": {"app": "a", "zone": "2"}}, owner=record("TunnelGroupBackend/a", was)
    )
    assert (
        make_plan(declare("TunnelGroupBackend/a", was, ignore=("labels.zone",)), seen=snapshot(backend)).changes == ()
    )


def test_an_ignored_label_that_somebody_removed_stays_away() -> None:
    was = {"labels": {"app": "a", "zone": "1"}}
    backend = live("TunnelGroupBackend", "b", {"labels": {"app": "b"}}, owner=record("TunnelGroupBackend/a", was))
    plan = make_plan(declare("TunnelGroupBackend/a", was, ignore=("labels.zone",)), seen=snapshot(backend))
    assert (plan.calls[0].body or {})["labels"] == {"app": "a"}


def metrics(key: str, service: str) -> dict[str, Any]:
    return {"target": {"metrics": {"api_key": secret(key), "service": service}}}


SHOWN = {"target": {"metrics": {"api_key": "", "service": "edge"}}}


def test_an_ignored_secret_that_is_never_read_back_is_not_sent_for_its_own_sake() -> None:
    destination = live("EventDestination", "ed_1", SHOWN, owner=record("EventDestination/a", metrics("one", "edge")))
    declared = declare("EventDestination/a", metrics("two", "edge"), ignore=("target.metrics.api_key",))
    assert make_plan(declared, seen=snapshot(destination)).changes == ()


def test_an_ignored_secret_is_sent_with_what_surrounds_it_for_the_platform_takes_it_whole() -> None:
    destination = live("EventDestination", "ed_1", SHOWN, owner=record("EventDestination/a", metrics("one", "edge")))
    declared = declare("EventDestination/a", metrics("two", "other"), ignore=("target.metrics.api_key",))
    plan = make_plan(declared, seen=snapshot(destination))
    assert list(fields(plan)) == ["target.metrics.service"]
    assert (plan.calls[0].body or {})["target"]["metrics"]["api_key"] == secret("two")


def test_a_field_that_is_no_longer_ignored_is_enforced_again() -> None:
    edge = live("TLSEdge", "e", {"description": "by hand"}, owner=record("TLSEdge/a", {}))
    plan = make_plan(declare("TLSEdge/a", {"description": "x"}), seen=snapshot(edge))
    assert fields(plan)["description"].changed_by is ChangedBy.BOTH


def test_a_part_inside_what_is_no_object_is_ignored_in_vain() -> None:
    edge = live("TLSEdge", "e", {"description": "by hand"}, owner=record("TLSEdge/a", {"description": "x"}))
    plan = make_plan(
        declare("TLSEdge/a", {"description": "x"}, ignore=("description.x", "nothing.y")), seen=snapshot(edge)
    )
    assert [field.path for field in change_of(plan, "TLSEdge/a").fields] == ["description"]


# --- secrets that no manifest declares --------------------------------------------------------------------------------

UNTOLD = {"certificate_pem": "PEM"}


def test_a_secret_that_no_manifest_tells_stays_as_it_is() -> None:
    certificate = live("TLSCertificate", "cert_1", UNTOLD)
    plan = make_plan(
        declare("TLSCertificate/a", UNTOLD, id="cert_1", ignore=("private_key_pem",)), seen=snapshot(certificate)
    )
    assert ([change.fields for change in plan.changes], plan.problems) == ([()], ())


def test_an_object_is_not_made_without_a_secret_that_no_manifest_tells() -> None:
    plan = make_plan(declare("TLSCertificate/a", UNTOLD, ignore=("private_key_pem",)))
    assert [error.text for error in plan.errors] == [
        "it does not exist and cannot be created without private_key_pem, which no manifest declares"
    ]


def test_an_object_is_not_replaced_without_a_secret_that_no_manifest_tells() -> None:
    certificate = live("TLSCertificate", "cert_1", {"certificate_pem": "OLD"}, owner=record("TLSCertificate/a"))
    plan = make_plan(declare("TLSCertificate/a", UNTOLD, ignore=("private_key_pem",)), seen=snapshot(certificate))
    assert [error.text for error in plan.errors] == [
        "it cannot be replaced without private_key_pem, which no manifest declares"
    ]


METRICS = {"target": {"metrics": {"service": "edge"}}}


def test_what_surrounds_a_secret_that_nobody_can_read_is_not_changed_without_it() -> None:
    destination = live("EventDestination", "ed_1", METRICS, owner=record("EventDestination/a", METRICS))
    changed = {"target": {"metrics": {"service": "core"}}}
    plan = make_plan(
        declare("EventDestination/a", changed, ignore=("target.metrics.api_key",)), seen=snapshot(destination)
    )
    assert [error.text for error in plan.errors] == [
        "it cannot be changed without target.metrics.api_key, which no manifest declares"
    ]


def test_another_field_changes_without_a_secret_that_no_manifest_tells() -> None:
    destination = live("EventDestination", "ed_1", METRICS, owner=record("EventDestination/a", METRICS))
    changed = {**METRICS, "description": "vendor"}
    plan = make_plan(
        declare("EventDestination/a", changed, ignore=("target.metrics.api_key",)), seen=snapshot(destination)
    )
    assert (list(fields(plan)), plan.problems) == (["description"], ())


def test_a_secret_that_is_shown_goes_along_with_what_surrounds_it() -> None:
    hook = {"webhook_verification": {"enabled": True, "provider": "github", "secret": "s"}}
    route = {"edge_id": "edghts_1", "match_type": "exact_path", "match": "/"}
    live_route = live(
        "HTTPSEdgeRoute", "edghtsrt_1", {**route, **hook}, owner=record("HTTPSEdgeRoute/a"), parent="edghts_1"
    )
    declared = {**route, "webhook_verification": {"provider": "slack"}}
    plan = make_plan(
        declare("HTTPSEdgeRoute/a", declared, ignore=("webhook_verification.secret",)), seen=snapshot(live_route)
    )
    body = (plan.calls[0].body or {})["webhook_verification"]
    assert body == {"provider": "slack", "secret": secret("s")}


# --- ignored parts ----------------------------------------------------------------------------------------------------

DESTINATION = kinds.get("EventDestination")
LOGS = {"logs": {"log_group_arn": "arn", "auth": {"creds": {"cloud_access_key_id": "id"}}}}
LIVE_LOGS = {"logs": {"log_group_arn": "live", "auth": {"creds": {"cloud_access_key_id": "live"}}}}


@pytest.mark.parametrize(
    ("path", "spec", "have", "merged"),
    [
        ("target.logs.log_group_arn", LOGS, LIVE_LOGS, {"logs": {**LOGS["logs"], "log_group_arn": "live"}}),
        (
            "target.logs.log_group_arn",
            LOGS,
            {"logs": {"log_group_arn": None}},
            {"logs": {"auth": LOGS["logs"]["auth"]}},
        ),
        ("target.logs.log_group_arn", LOGS, {"logs": None}, LOGS),
        ("target.logs.log_group_arn", {"logs": None}, LIVE_LOGS, {"logs": None}),
        ("target.logs.log_group_arn", {"logs": {}}, LIVE_LOGS, {"logs": {"log_group_arn": "live"}}),
        ("target.logs", LOGS, LIVE_LOGS, LIVE_LOGS),
        # Ignored as a whole: it is not sent at all.
        ("target", LOGS, LIVE_LOGS, LOGS),
        # Responses do not show it: the declared value is the only one to send.
        (
            "target.metrics.api_key",
            {"metrics": {"api_key": "x"}},
            {"metrics": {"api_key": "live"}},
            {"metrics": {"api_key": "x"}},
        ),
        ("description.inner", LOGS, LIVE_LOGS, LOGS),
    ],
)
def test_an_ignored_part_has_its_live_value(path: str, spec: Any, have: Any, merged: Any) -> None:
    before = {"target": spec, "description": "declared"}
    after = overlay_live(DESTINATION, before, {"target": have, "description": "live"}, [path])
    assert after == {"target": merged, "description": "declared"}
    assert before == {"target": spec, "description": "declared"}
    assert overlay_live(DESTINATION, before, {"target": None}, [path]) == before


@pytest.mark.parametrize(
    ("paths", "left"),
    [
        ([], {"target": {"metrics": {"api_key": "x", "service": "s"}}, "description": "d"}),
        (["description"], {"target": {"metrics": {"api_key": "x", "service": "s"}}}),
        (["target"], {"description": "d"}),
        (["target.metrics.api_key"], {"target": {"metrics": {"service": "s"}}, "description": "d"}),
        (["target.metrics.api_key", "description"], {"target": {"metrics": {"service": "s"}}}),
        # Compared, since it has its live value by now.
        (["target.metrics.service"], {"target": {"metrics": {"api_key": "x", "service": "s"}}, "description": "d"}),
        (["missing"], {"target": {"metrics": {"api_key": "x", "service": "s"}}, "description": "d"}),
    ],
)
def test_what_is_ignored_is_not_compared(paths: list[str], left: dict[str, Value]) -> None:
    want: dict[str, Value] = {"target": {"metrics": {"api_key": "x", "service": "s"}}, "description": "d"}
    assert prune(DESTINATION, want, paths) == left
    assert prune(DESTINATION, {"description": "d"}, ["target.metrics.api_key"]) == {"description": "d"}


@pytest.mark.parametrize(
    ("metrics", "paths", "missing"),
    [
        ({"service": "s"}, ["target.metrics.api_key"], ["target.metrics.api_key"]),
        ({"api_key": None}, ["target.metrics.api_key"], ["target.metrics.api_key"]),
        ({"api_key": ""}, ["target.metrics.api_key"], ["target.metrics.api_key"]),
        ({"api_key": secret("x")}, ["target.metrics.api_key"], []),
        ({}, ["target.metrics.service"], []),
        ({}, [], []),
        (None, ["target.metrics.api_key"], []),
        ({}, ["target.metrics.missing", "target.metrics.api_key"], ["target.metrics.api_key"]),
    ],
)
def test_an_ignored_secret_is_missing_if_what_encloses_it_is_declared(
    metrics: Any, paths: list[str], missing: list[str]
) -> None:
    assert find_undeclared_secrets(DESTINATION, {"target": {"metrics": metrics}}, paths) == missing
    assert find_undeclared_secrets(DESTINATION, {}, paths) == []


def test_an_ignored_secret_of_the_object_itself_is_missing_if_it_is_not_declared() -> None:
    kind = kinds.get("Secret")
    assert find_undeclared_secrets(kind, {"name": "s"}, ["value", "name"]) == ["value"]
    assert find_undeclared_secrets(kind, {"value": secret("x")}, ["value"]) == []
