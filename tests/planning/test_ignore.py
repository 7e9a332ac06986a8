"""Fields that `lifecycle.ignore` excludes from management."""

from __future__ import annotations

from typing import Any

import pytest

from reconciler import kinds
from reconciler.model.change import ChangedBy
from reconciler.model.value import Value
from reconciler.planning.comparing.ignore import find_undeclared_secrets, overlay_live, prune
from tests.harness.builders import change_of, declare, fields, live, make_plan, record, secret, snapshot


def test_an_ignored_field_is_not_compared() -> None:
    was = {"description": "x"}
    edge = live("TLSEdge", "e", {"description": "by hand"}, owner=record("TLSEdge/a", was))
    assert make_plan(declare("TLSEdge/a", was, ignore=("description",)), seen=snapshot(edge)).changes == ()


def test_an_ignored_field_is_not_sent_with_other_fields() -> None:
    was = {"description": "x"}
    edge = live("TLSEdge", "e", {"description": "by hand"}, owner=record("TLSEdge/a", was))
    plan = make_plan(
        declare("TLSEdge/a", {**was, "hostports": ["a.x:443"]}, ignore=("description",)), seen=snapshot(edge)
    )
    assert (plan.calls[0].body or {}).keys() == {"hostports"}


def test_an_ignored_field_is_not_in_the_owner_record_of_an_adopted_object() -> None:
    edge = live("TLSEdge", "e", {"description": "live", "hostports": ["a.x:443"]})
    declared = {"description": "declared", "hostports": ["a.x:443"]}
    plan = make_plan(declare("TLSEdge/e", declared, id="e", adopt=True, ignore=["description"]), seen=snapshot(edge))
    (call,) = plan.calls
    assert call.owner is not None
    assert (call.body, list(call.owner.applied)) == ({}, ["hostports"])


def test_an_ignored_field_is_sent_by_a_create() -> None:
    plan = make_plan(declare("TLSEdge/a", {"description": "x"}, ignore=("description",)))
    assert (plan.calls[0].body or {})["description"] == "x"


def test_an_ignored_module_attached_by_others_is_unchanged() -> None:
    edge = live("TLSEdge", "e", {"backend": {"backend": {"id": "b"}}}, owner=record("TLSEdge/a", {}))
    assert make_plan(declare("TLSEdge/a", ignore=("backend",)), seen=snapshot(edge)).changes == ()


def test_ignored_metadata_is_unchanged_by_an_update_of_the_owner_record() -> None:
    edge = live("TLSEdge", "e", {"metadata": "by hand"}, owner=record("TLSEdge/a", {}))
    plan = make_plan(declare("TLSEdge/a", {"description": "x"}, ignore=("metadata",)), seen=snapshot(edge))
    assert plan.calls[0].owner is not None
    assert plan.calls[0].owner.text == "by hand"


def test_ignored_metadata_is_copied_to_a_replacement() -> None:
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


def test_an_ignored_part_is_sent_with_its_live_value_in_an_update_of_the_module() -> None:
    now = {"ip_restriction": {"enabled": False, "ip_policies": [{"id": "q"}]}}
    edge = live("TLSEdge", "e", now, owner=record("TLSEdge/a", MODULE))
    plan = make_plan(declare("TLSEdge/a", MODULE, ignore=("ip_restriction.enabled",)), seen=snapshot(edge))
    sent = plan.calls[0].body or {}
    assert sent.get("ip_restriction", sent) == {"ip_policy_ids": ["p"], "enabled": False}


def test_an_ignored_part_of_a_missing_module_is_sent_with_the_others() -> None:
    edge = live("TLSEdge", "e", {}, owner=record("TLSEdge/a", MODULE))
    plan = make_plan(declare("TLSEdge/a", MODULE, ignore=("ip_restriction.enabled",)), seen=snapshot(edge))
    assert (plan.calls[0].body or {}) == MODULE["ip_restriction"]


def test_an_ignored_server_default_is_retained_by_an_update_of_its_module() -> None:
    now = {"tls_termination": {"enabled": False, "terminate_at": "edge", "min_version": "1.3"}}
    edge = live("TLSEdge", "e", now, owner=record("TLSEdge/a", {"tls_termination": {}}))
    plan = make_plan(
        declare("TLSEdge/a", {"tls_termination": {}}, ignore=("tls_termination.min_version",)), seen=snapshot(edge)
    )
    sent = plan.calls[0].body or {}
    assert sent.get("tls_termination", sent)["min_version"] == "1.3"


def test_an_ignored_label_is_unchanged() -> None:
    was = {"labels": {"app": "a", "zone": "1"}}
    backend = live(
        "TunnelGroupBackend", "b", {"labels": {"app": "a", "zone": "2"}}, owner=record("TunnelGroupBackend/a", was)
    )
    assert (
        make_plan(declare("TunnelGroupBackend/a", was, ignore=("labels.zone",)), seen=snapshot(backend)).changes == ()
    )


def test_an_ignored_label_that_was_removed_is_not_added_again() -> None:
    was = {"labels": {"app": "a", "zone": "1"}}
    backend = live("TunnelGroupBackend", "b", {"labels": {"app": "b"}}, owner=record("TunnelGroupBackend/a", was))
    plan = make_plan(declare("TunnelGroupBackend/a", was, ignore=("labels.zone",)), seen=snapshot(backend))
    assert (plan.calls[0].body or {})["labels"] == {"app": "a"}


def metrics(key: str, service: str) -> dict[str, Any]:
    return {"target": {"metrics": {"api_key": secret(key), "service": service}}}


LIVE_METRICS = {"target": {"metrics": {"api_key": "", "service": "edge"}}}


def test_an_ignored_write_only_secret_causes_no_update_by_itself() -> None:
    destination = live(
        "EventDestination", "ed_1", LIVE_METRICS, owner=record("EventDestination/a", metrics("one", "edge"))
    )
    declared = declare("EventDestination/a", metrics("two", "edge"), ignore=("target.metrics.api_key",))
    assert make_plan(declared, seen=snapshot(destination)).changes == ()


def test_an_ignored_secret_is_sent_with_an_update_of_its_target() -> None:
    destination = live(
        "EventDestination", "ed_1", LIVE_METRICS, owner=record("EventDestination/a", metrics("one", "edge"))
    )
    declared = declare("EventDestination/a", metrics("two", "other"), ignore=("target.metrics.api_key",))
    plan = make_plan(declared, seen=snapshot(destination))
    assert list(fields(plan)) == ["target.metrics.service"]
    assert (plan.calls[0].body or {})["target"]["metrics"]["api_key"] == secret("two")


def test_a_field_that_is_no_longer_ignored_is_enforced() -> None:
    edge = live("TLSEdge", "e", {"description": "by hand"}, owner=record("TLSEdge/a", {}))
    plan = make_plan(declare("TLSEdge/a", {"description": "x"}), seen=snapshot(edge))
    assert fields(plan)["description"].changed_by is ChangedBy.BOTH


def test_an_ignored_path_inside_a_text_has_no_effect() -> None:
    edge = live("TLSEdge", "e", {"description": "by hand"}, owner=record("TLSEdge/a", {"description": "x"}))
    plan = make_plan(
        declare("TLSEdge/a", {"description": "x"}, ignore=("description.x", "nothing.y")), seen=snapshot(edge)
    )
    assert [field.path for field in change_of(plan, "TLSEdge/a").fields] == ["description"]


# --- secrets that no manifest declares --------------------------------------------------------------------------------

CERTIFICATE = {"certificate_pem": "PEM"}


def test_an_undeclared_secret_is_unchanged_by_an_adoption() -> None:
    certificate = live("TLSCertificate", "cert_1", CERTIFICATE)
    plan = make_plan(
        declare("TLSCertificate/a", CERTIFICATE, id="cert_1", ignore=("private_key_pem",)), seen=snapshot(certificate)
    )
    assert ([change.fields for change in plan.changes], plan.problems) == ([()], ())


def test_an_object_is_not_created_without_an_undeclared_secret() -> None:
    plan = make_plan(declare("TLSCertificate/a", CERTIFICATE, ignore=("private_key_pem",)))
    assert [error.text for error in plan.errors] == [
        "it does not exist and cannot be created without private_key_pem, which no manifest declares"
    ]


def test_an_object_is_not_replaced_without_an_undeclared_secret() -> None:
    certificate = live("TLSCertificate", "cert_1", {"certificate_pem": "OLD"}, owner=record("TLSCertificate/a"))
    plan = make_plan(declare("TLSCertificate/a", CERTIFICATE, ignore=("private_key_pem",)), seen=snapshot(certificate))
    assert [error.text for error in plan.errors] == [
        "it cannot be replaced without private_key_pem, which no manifest declares"
    ]


METRICS = {"target": {"metrics": {"service": "edge"}}}


def test_a_target_is_not_updated_without_its_undeclared_write_only_secret() -> None:
    destination = live("EventDestination", "ed_1", METRICS, owner=record("EventDestination/a", METRICS))
    changed = {"target": {"metrics": {"service": "core"}}}
    plan = make_plan(
        declare("EventDestination/a", changed, ignore=("target.metrics.api_key",)), seen=snapshot(destination)
    )
    assert [error.text for error in plan.errors] == [
        "it cannot be changed without target.metrics.api_key, which no manifest declares"
    ]


def test_another_field_is_updated_without_the_undeclared_secret() -> None:
    destination = live("EventDestination", "ed_1", METRICS, owner=record("EventDestination/a", METRICS))
    changed = {**METRICS, "description": "vendor"}
    plan = make_plan(
        declare("EventDestination/a", changed, ignore=("target.metrics.api_key",)), seen=snapshot(destination)
    )
    assert (list(fields(plan)), plan.problems) == (["description"], ())


def test_a_readable_undeclared_secret_is_sent_with_an_update_of_its_module() -> None:
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
        # Write-only: the declared value is the only one to send.
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
    ("paths", "compared"),
    [
        ([], {"target": {"metrics": {"api_key": "x", "service": "s"}}, "description": "d"}),
        (["description"], {"target": {"metrics": {"api_key": "x", "service": "s"}}}),
        (["target"], {"description": "d"}),
        (["target.metrics.api_key"], {"target": {"metrics": {"service": "s"}}, "description": "d"}),
        (["target.metrics.api_key", "description"], {"target": {"metrics": {"service": "s"}}}),
        # Compared: its live value was merged before.
        (["target.metrics.service"], {"target": {"metrics": {"api_key": "x", "service": "s"}}, "description": "d"}),
        (["missing"], {"target": {"metrics": {"api_key": "x", "service": "s"}}, "description": "d"}),
    ],
)
def test_ignored_paths_are_not_compared(paths: list[str], compared: dict[str, Value]) -> None:
    want: dict[str, Value] = {"target": {"metrics": {"api_key": "x", "service": "s"}}, "description": "d"}
    assert prune(DESTINATION, want, paths) == compared
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
def test_an_ignored_secret_is_undeclared_if_its_parent_is_declared(
    metrics: Any, paths: list[str], missing: list[str]
) -> None:
    assert find_undeclared_secrets(DESTINATION, {"target": {"metrics": metrics}}, paths) == missing
    assert find_undeclared_secrets(DESTINATION, {}, paths) == []


def test_an_ignored_secret_of_the_object_itself_is_undeclared_without_a_value() -> None:
    kind = kinds.get("Secret")
    assert find_undeclared_secrets(kind, {"name": "s"}, ["value", "name"]) == ["value"]
    assert find_undeclared_secrets(kind, {"value": secret("x")}, ["value"]) == []
