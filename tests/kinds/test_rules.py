"""The rules between the fields of a declaration: the findings of each, and their paths."""

from __future__ import annotations

from typing import Any

import pytest

from reconciler import kinds
from reconciler.model.problem import Finding, Severity
from reconciler.model.value import Sealed, Secret, Template
from reconciler.project.documents.validation import findings_of
from tests.kinds import manifests, pems


def check_spec(name: str, spec: dict[str, Any]) -> list[Finding]:
    return [*findings_of(kinds.get(name).spec.model_validate(spec))]


def check_example(name: str, /, **more: Any) -> list[Finding]:
    return check_spec(name, {**manifests.spec(kinds.get(name)), **more})


def refuses(name: str, path: str, /, **more: Any) -> bool:
    """Whether the kind's types refuse the example with these values, at this path."""
    with pytest.raises(ValueError, match=path.replace(".", r"\.")):
        kinds.get(name).spec.model_validate({**manifests.spec(kinds.get(name)), **more})
    return True


# --- edges and routes -------------------------------------------------------------------------------------------------


def test_a_minimum_version_is_an_error_with_upstream_termination() -> None:
    (only,) = check_spec("TLSEdge", {"tls_termination": {"terminate_at": "upstream", "min_version": "1.2"}})
    assert (only.path, only.severity) == (("tls_termination", "min_version"), Severity.ERROR)


def test_upstream_termination_without_a_version_is_valid() -> None:
    assert check_spec("TLSEdge", {"tls_termination": {"terminate_at": "upstream", "min_version": None}}) == []


def test_modules_that_need_plain_text_are_reported_with_upstream_termination() -> None:
    policy: dict[str, Any] = {"value": {"on_tcp_connect": []}}
    both = check_spec(
        "TLSEdge",
        {
            "tls_termination": {"terminate_at": "upstream"},
            "mutual_tls": {"certificate_authority_ids": ["ca_1"]},
            "traffic_policy": policy,
        },
    )
    assert [(finding.path, finding.severity) for finding in both] == [
        (("mutual_tls",), Severity.ERROR),
        (("traffic_policy",), Severity.WARNING),
    ]


def test_findings_in_an_inline_policy_point_to_the_value() -> None:
    rule: dict[str, Any] = {"on_http_request": [{"actions": [{"type": "deny"}, {}]}]}
    (only,) = check_spec("TCPEdge", {"traffic_policy": {"value": rule}})
    assert only.path == ("traffic_policy", "value", "on_http_request", 0, "actions", 1)


@pytest.mark.parametrize("provider", ["github", "TWILIO", "zoom"])
def test_a_webhook_provider_needs_a_secret(provider: str) -> None:
    (only,) = check_example("HTTPSEdgeRoute", webhook_verification={"provider": provider})
    assert (only.path, only.severity) == (("webhook_verification", "secret"), Severity.ERROR)


@pytest.mark.parametrize("provider", ["sns", "SNS"])
def test_the_webhook_provider_sns_needs_no_secret(provider: str) -> None:
    assert check_example("HTTPSEdgeRoute", webhook_verification={"provider": provider}) == []


@pytest.mark.parametrize(
    "secret", ["s", Secret("s", "env:S"), Template((manifests.ELSEWHERE,))], ids=["text", "secret", "ref"]
)
def test_the_webhook_provider_sns_accepts_no_secret(secret: Any) -> None:
    module = {"provider": "SNS", "secret": secret}
    (only,) = check_example("HTTPSEdgeRoute", webhook_verification=module)
    assert (only.path, only.severity) == (("webhook_verification", "secret"), Severity.ERROR)


@pytest.mark.parametrize("empty", ["", Secret("", "manifest:X")])
def test_an_empty_secret_counts_as_missing(empty: Any) -> None:
    assert check_example("HTTPSEdgeRoute", webhook_verification={"provider": "sns", "secret": empty}) == []
    (only,) = check_example("HTTPSEdgeRoute", webhook_verification={"provider": "github", "secret": empty})
    assert only.path == ("webhook_verification", "secret")
    for application, missing in (({}, []), ({"client_id": "c"}, ["client_secret"])):
        google = {**application, "client_secret": empty}
        findings = check_example("HTTPSEdgeRoute", oauth={"provider": {"google": google}})
        assert [finding.path[-1] for finding in findings] == missing


def test_an_application_needs_an_id_beside_an_unknown_secret() -> None:
    for secret in (Secret("s", "env:S"), Sealed("env:S"), Template((manifests.ELSEWHERE,))):
        for application, missing in (({}, ["client_id"]), ({"client_id": "c"}, [])):
            google = {**application, "client_secret": secret}
            findings = check_example("HTTPSEdgeRoute", oauth={"provider": {"google": google}})
            assert [finding.path[-1] for finding in findings] == missing


@pytest.mark.parametrize(
    ("kind", "spec", "path"),
    [
        ("HTTPResponseBackend", lambda add: {"headers": add}, ("headers",)),
        ("HTTPSEdgeRoute", lambda add: {"request_headers": {"add": add}}, ("request_headers", "add")),
        ("HTTPSEdgeRoute", lambda add: {"response_headers": {"add": add}}, ("response_headers", "add")),
    ],
)
def test_a_duplicate_header_is_an_error_in_any_case(kind: str, spec: Any, path: tuple[str, ...]) -> None:
    assert check_example(kind, **spec({"X-A": "1", "X-B": "1"})) == []
    (only,) = check_example(kind, **spec({"X-A": "1", "x-b": "1", "x-a": "2"}))
    assert (only.path, only.text, only.severity) == ((*path, "x-a"), "duplicate of the header X-A", Severity.ERROR)


@pytest.mark.parametrize(
    ("kind", "module", "ids"),
    [
        ("TLSEdge", "ip_restriction", "ip_policy_ids"),
        ("TCPEdge", "ip_restriction", "ip_policy_ids"),
        ("HTTPSEdgeRoute", "ip_restriction", "ip_policy_ids"),
        ("TLSEdge", "mutual_tls", "certificate_authority_ids"),
        ("HTTPSEdge", "mutual_tls", "certificate_authority_ids"),
    ],
)
def test_an_enabled_module_needs_a_policy_or_an_authority(kind: str, module: str, ids: str) -> None:
    spec = {"edge_id": "edghts_1"} if kind == "HTTPSEdgeRoute" else {}
    assert check_spec(kind, {**spec, module: {"enabled": False, ids: []}}) == []
    assert [finding.path for finding in check_spec(kind, {**spec, module: {ids: []}})] == [(module, ids)]


def test_an_unknown_webhook_provider_is_a_warning() -> None:
    (only,) = check_example("HTTPSEdgeRoute", webhook_verification={"provider": "githb", "secret": "s"})
    assert (only.path, only.remedy, only.severity) == (
        ("webhook_verification", "provider"),
        "did you mean github?",
        Severity.WARNING,
    )


def test_a_route_of_an_existing_object_needs_no_match() -> None:
    route = kinds.get("HTTPSEdgeRoute")
    assert check_spec("HTTPSEdgeRoute", {"edge_id": "edghts_1", "backend": {"backend_id": "bkdtg_1"}}) == []
    assert route.required_unless_id == ("match_type", "match")


@pytest.mark.parametrize("name", ["inactivity_timeout", "maximum_duration"])
def test_timeouts_of_a_login_are_unsigned(name: str) -> None:
    assert refuses("HTTPSEdgeRoute", f"saml.{name}", saml={"idp_metadata": "<x/>", name: -1})


# --- domains, addresses, endpoints ------------------------------------------------------------------------------------


def test_a_domain_has_an_uploaded_certificate_or_a_managed_one() -> None:
    (only,) = check_example("ReservedDomain", certificate_id="cert_1")
    assert only.path == ("certificate_id",)


def test_managed_certificates_of_domain_and_ingress_have_different_default_keys() -> None:
    domain = kinds.get("ReservedDomain").spec.model_validate({"domain": "a.b", "certificate_management_policy": {}})
    ingress = kinds.get("AgentIngress").spec.model_validate({"domain": "a.b", "certificate_management_policy": {}})
    assert domain.model_dump()["certificate_management_policy"]["private_key_type"] == "ecdsa"
    assert ingress.model_dump()["certificate_management_policy"]["private_key_type"] == "rsa"


@pytest.mark.parametrize("name", ["ReservedDomain", "ReservedAddress"])
@pytest.mark.parametrize("region", ["au", "eu", "ap", "us", "jp", "in", "sa"])
def test_seven_regions_are_known(name: str, region: str) -> None:
    assert check_example(name, region=region) == []


@pytest.mark.parametrize("name", ["ReservedDomain", "ReservedAddress"])
def test_another_region_is_refused(name: str) -> None:
    assert refuses(name, "region", region="mars")


def test_an_agent_ingress_is_no_wildcard() -> None:
    assert refuses("AgentIngress", "domain", domain="*.example.com")


def test_an_endpoint_needs_a_policy() -> None:
    assert refuses("CloudEndpoint", "traffic_policy", traffic_policy="")
    with pytest.raises(ValueError, match="traffic_policy"):
        kinds.get("CloudEndpoint").spec.model_validate({"url": "https://app.example.com"})


def test_a_duplicate_binding_is_an_error_and_an_unknown_one_a_warning() -> None:
    repeated, unknown = check_example("CloudEndpoint", bindings=["public", "public", "secret"])
    assert (repeated.path, repeated.severity) == (("bindings", 1), Severity.ERROR)
    assert (unknown.path, unknown.severity) == (("bindings", 2), Severity.WARNING)


@pytest.mark.parametrize(
    ("url", "bindings", "fits"),
    [
        ("https://a.internal", ["internal"], True),
        ("tls://A.Internal:8443", ["internal"], True),
        ("https://a.example.com", ["public"], True),
        ("tls://internal.example.com", ["kubernetes"], True),
        ("https://internal.example.com", ["kubernetes"], False),
        (Template(("https://", manifests.ELSEWHERE)), ["internal"], True),
        ("https://a.internal", [manifests.ELSEWHERE], True),
        ("https://a.internal", ["public"], False),
        ("https://a.example.com", ["public", "internal"], False),
        ("https://internal.example.com", ["internal"], False),
    ],
)
def test_only_hosts_below_internal_have_the_internal_binding(url: Any, bindings: list[Any], fits: bool) -> None:
    findings = check_example("CloudEndpoint", url=url, bindings=bindings)
    assert [(finding.path, finding.severity) for finding in findings] == (
        [] if fits else [(("bindings",), Severity.ERROR)]
    )


def test_an_internal_endpoint_may_omit_its_binding() -> None:
    assert check_example("CloudEndpoint", url="https://a.internal") == []


def test_an_empty_list_of_bindings_is_an_error() -> None:
    [check_spec] = check_example("CloudEndpoint", bindings=[])
    assert (check_spec.path, check_spec.severity) == (("bindings",), Severity.ERROR)


# --- access -----------------------------------------------------------------------------------------------------------


def test_an_ip_restriction_names_at_least_one_policy() -> None:
    (only,) = check_example("IPRestriction", ip_policy_ids=[])
    assert only.path == ("ip_policy_ids",)


@pytest.mark.parametrize("sort", ["dashboard", "api", "agent", "endpoints"])
def test_an_ip_restriction_has_one_of_four_types(sort: str) -> None:
    assert check_example("IPRestriction", type=sort) == []


def test_an_unknown_type_of_ip_restriction_is_refused() -> None:
    assert refuses("IPRestriction", "type", type="kitchen")


def test_an_ip_rule_allows_or_denies() -> None:
    assert check_example("IPPolicyRule", action="deny") == []
    assert refuses("IPPolicyRule", "action", action="ask")


def test_an_invalid_acl_rule_is_reported_at_its_place() -> None:
    assert refuses("TunnelCredential", "acl.1", acl=["bind:a.example.com", "allow:b.example.com"])


@pytest.mark.parametrize("rule", ["bind:*.internal", "bind:localhost", "bind:my_app.example.com"])
def test_a_credential_may_bind_hosts_that_are_no_domains(rule: str) -> None:
    assert check_example("TunnelCredential", acl=[rule]) == []


def test_an_endpoint_may_serve_all_internal_hosts() -> None:
    assert check_example("CloudEndpoint", url="https://*.internal", bindings=["internal"]) == []


def test_a_bot_user_needs_a_name() -> None:
    assert refuses("BotUser", "name", name=" ")


@pytest.mark.parametrize(("status", "fits"), [(100, True), (599, True), (99, False), (600, False)])
def test_a_response_has_an_http_status(status: int, fits: bool) -> None:
    if fits:
        assert check_example("HTTPResponseBackend", status_code=status) == []
    else:
        assert refuses("HTTPResponseBackend", "status_code", status_code=status)


# --- keys and certificates --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("spec", "path"),
    [
        ({"private_key_type": "ed25519", "elliptic_curve": "p256"}, ("elliptic_curve",)),
        ({"elliptic_curve": "p256"}, ("elliptic_curve",)),
        ({"private_key_type": "ecdsa", "key_size": 2048}, ("key_size",)),
        ({"private_key_type": "rsa", "key_size": 1024}, ("key_size",)),
    ],
)
def test_key_parameters_fit_the_kind_of_key(spec: dict[str, Any], path: tuple[str]) -> None:
    assert [finding.path for finding in check_spec("SSHCertificateAuthority", spec)] == [path]


@pytest.mark.parametrize(
    "spec",
    [
        {},
        {"private_key_type": "rsa", "key_size": 4096},
        {"private_key_type": "ecdsa", "elliptic_curve": "p384"},
    ],
)
def test_key_parameters_are_optional(spec: dict[str, Any]) -> None:
    assert check_spec("SSHCertificateAuthority", spec) == []


@pytest.mark.parametrize(
    ("after", "until", "errors"),
    [
        ("2030-01-01T00:00:00Z", "2031-01-01T00:00:00Z", 0),
        ("2030-01-01T00:00:00Z", "2030-01-01T00:00:00Z", 1),
        ("2030-01-01T00:00:00Z", "2030-01-01T01:00:00+02:00", 1),
        ("2030-01-01T00:00:00Z", None, 0),
        (None, "2030-01-01T00:00:00Z", 0),
        (Template((manifests.ELSEWHERE,)), "2030-01-01T00:00:00Z", 0),
    ],
)
def test_a_certificate_ends_after_it_begins(after: Any, until: Any, errors: int) -> None:
    assert len(check_example("SSHHostCertificate", valid_after=after, valid_until=until)) == errors


@pytest.mark.parametrize("name", ["SSHHostCertificate", "SSHUserCertificate"])
def test_only_a_credential_accepts_a_public_key_as_pem(name: str) -> None:
    assert refuses(name, "public_key", public_key=pems.public_pem())
    assert check_example("SSHCredential", public_key=pems.public_pem()) == []


def test_a_certificate_needs_its_own_private_key() -> None:
    own = Secret(pems.private_key("a"), "file:a.key")
    other = Secret(pems.private_key("b"), "file:b.key")
    assert check_spec("TLSCertificate", {"certificate_pem": pems.certificate("a"), "private_key_pem": own}) == []
    (only,) = check_spec("TLSCertificate", {"certificate_pem": pems.certificate("a"), "private_key_pem": other})
    assert only.path == ("private_key_pem",)


# --- events -----------------------------------------------------------------------------------------------------------

ROLE = {"role": {"role_arn": "arn:role"}}
CREDS = {"creds": {"cloud_access_key_id": "id", "cloud_secret_access_key": "secret"}}
STREAM = {"auth": ROLE, "stream_arn": "arn:stream"}
LOGS = {"auth": CREDS, "log_group_arn": "arn:logs"}
TARGETS: dict[str, dict[str, Any]] = {
    "delivery": {"auth": ROLE, "delivery_stream_arn": "arn:delivery"},
    "stream": STREAM,
    "logs": LOGS,
    "metrics": {"api_key": "k", "tags": "a:b", "service": "edge", "site": "eu"},
    "ingestion": {
        "tenant_id": "t",
        "client_id": "c",
        "client_secret": "s",
        "logs_ingestion_uri": "https://logs.example.com",
        "data_collection_rule_id": "r",
        "data_collection_stream_name": "n",
    },
}


@pytest.mark.parametrize("member", TARGETS)
def test_each_of_five_targets_is_valid(member: str) -> None:
    assert check_spec("EventDestination", {"target": {member: TARGETS[member]}}) == []


def test_a_destination_needs_a_target() -> None:
    (only,) = check_spec("EventDestination", {"target": {}})
    assert only.path == ("target",)


def test_a_second_target_is_an_error() -> None:
    (only,) = check_spec("EventDestination", {"target": {"stream": STREAM, "logs": LOGS}})
    assert only.path == ("target", "logs")


@pytest.mark.parametrize(("auth", "path"), [({}, ()), ({**ROLE, **CREDS}, ("creds",))])
def test_a_target_needs_exactly_one_way_to_sign_in(auth: dict[str, Any], path: tuple[str, ...]) -> None:
    (only,) = check_spec("EventDestination", {"target": {"stream": {"auth": auth, "stream_arn": "arn:aws:kinesis:x"}}})
    assert only.path == ("target", "stream", "auth", *path)


def test_events_are_written_as_json_only() -> None:
    assert refuses("EventDestination", "format", format="xml")


def test_an_unknown_event_type_is_a_warning() -> None:
    (source,) = check_example("EventSource", type="ip_polcy_created.v0")
    assert (source.path, source.remedy, source.severity) == (
        ("type",),
        "did you mean ip_policy_created.v0?",
        Severity.WARNING,
    )


# --- configuration files of agents ------------------------------------------------------------------------------------

HTTP: dict[str, Any] = {"proto": "http", "addr": "80"}
WEB: dict[str, Any] = {"name": "web", "upstream": {"url": "8080"}}


def check_tunnel(**settings: Any) -> list[str]:
    return [format_finding(finding) for finding in check_spec("AgentConfig", {"tunnels": {"t": settings}})]


def check_endpoint(**settings: Any) -> list[str]:
    return [format_finding(finding) for finding in check_spec("AgentConfig", {"endpoints": [{**WEB, **settings}]})]


def format_finding(finding: Finding) -> str:
    return f"{'.'.join(map(str, finding.path))}: {finding.text}"


def test_every_setting_of_a_tunnel_and_of_an_endpoint_can_be_declared() -> None:
    policy = {"on_http_request": [{"actions": [{"type": "deny"}]}]}
    http = {
        **HTTP,
        "name": "web",
        "description": "d",
        "metadata": "m",
        "url": "https://a.example.com",
        "domain": "a.example.com",
        "subdomain": "a",
        "hostname": "a.example.com",
        "schemes": ["http", "https"],
        "inspect": True,
        "basic_auth": ["berlin:long-enough"],
        "circuit_breaker": 0.5,
        "compression": True,
        "websocket_tcp_converter": True,
        "host_header": "rewrite",
        "ip_restriction": {"allow_cidrs": ["192.0.2.0/24"], "deny_cidrs": ["198.51.100.0/24"]},
        "proxy_proto": "2",
        "mutual_tls_cas": "/etc/ca.pem",
        "oauth": {"provider": "google", "allow_domains": ["example.com"], "allow_emails": ["a@b.c"], "scopes": ["s"]},
        "oidc": {"issuer_url": "https://id.example.com", "client_id": "a", "client_secret": "b", "scopes": ["s"]},
        "request_header": {"add": ["x:y"], "remove": ["z"]},
        "response_header": {"add": ["x:y"], "remove": ["z"]},
        "user_agent_filter": {"allow": ["a.*"], "deny": ["b.*"]},
        "verify_webhook": {"provider": "github", "secret": "s"},
        "traffic_policy": policy,
    }
    tls = {"proto": "tls", "addr": "443", "crt": "a", "key": "b", "mutual_tls_cas": "c", "terminate_at": "agent"}
    labeled = {"labels": ["service=a"], "addr": "80", "inspect": True, "crt": "a", "key": "b", "metadata": "m"}
    tcp = {"proto": "tcp", "addr": "22", "remote_addr": "1.tcp.example.com:20000", "inspect": False}
    assert [check_tunnel(**settings) for settings in (http, tls, labeled, tcp)] == [[], [], [], []]
    endpoint = {
        "url": "tls://a.example.com",
        "upstream": {"url": "8443", "protocol": "http2", "proxy_protocol": "1"},
        "bindings": ["public"],
        "description": "d",
        "metadata": "m",
        "traffic_policy": {"on_tcp_connect": []},
        "pooling_enabled": True,
        "inspect": False,
        "agent_tls_termination": {
            "server_certificate": "a",
            "server_private_key": "b",
            "mutual_tls_certificate_authorities": ["c"],
        },
    }
    assert check_endpoint(**endpoint) == check_endpoint(traffic_policy_file="policy.yml") == []
    declared = kinds.get("AgentConfig").by_name
    for fields, written in ((declared["tunnels"], [http, tls, labeled, tcp]), (declared["endpoints"], [endpoint])):
        assert fields.item is not None
        known = {field.name for field in fields.item.fields}
        assert known - {"traffic_policy_file"} == {key for one in written for key in one} | {"name"}


@pytest.mark.parametrize(
    ("settings", "finding"),
    [
        ({"addr": "80"}, "tunnels.t: has no proto"),
        ({**HTTP, "labels": ["a=b"]}, "tunnels.t: has both proto and labels"),
        ({"labels": ["a=b"], "addr": "80", "domain": "a.example.com"}, "tunnels.t.domain: does not apply to a tunnel"),
        ({**HTTP, "proto": "tcp", "domain": "a.example.com"}, "tunnels.t.domain: does not apply to a tcp tunnel"),
        ({**HTTP, "remote_addr": "a.example.com:1"}, "tunnels.t.remote_addr: applies only to tcp tunnels"),
        ({"proto": "tls", "addr": "web"}, "tunnels.t.addr: 'web' has no port"),
        ({**HTTP, "terminate_at": "edge"}, "tunnels.t.terminate_at: does not apply to a http tunnel"),
        ({**HTTP, "proto": "tcp", "compression": True}, "tunnels.t.compression: does not apply to a tcp tunnel"),
        ({**HTTP, "proto": "tls", "crt": "a"}, "tunnels.t.crt: is set without key"),
        ({**HTTP, "proto": "tls", "key": "a"}, "tunnels.t.key: is set without crt"),
        ({**HTTP, "proto": "tls", "mutual_tls_cas": "a"}, "tunnels.t.mutual_tls_cas: is set without crt and key"),
    ],
)
def test_settings_of_a_tunnel_that_an_agent_refuses_are_errors(settings: dict[str, Any], finding: str) -> None:
    (found,) = check_tunnel(**settings)
    assert found.startswith(finding)


@pytest.mark.parametrize(
    ("settings", "finding"),
    [
        ({"bindings": ["public", "internal"]}, "endpoints.0.bindings: has 2 items"),
        ({"url": "https://a.internal", "bindings": ["public"]}, "endpoints.0.bindings: https://a.internal requires"),
        ({"url": "https://a.example.com", "bindings": ["internal"]}, "endpoints.0.bindings: https://a.example.com can"),
        ({"url": "https://a.b", "bindings": ["kubernetes"]}, "endpoints.0.bindings: the binding kubernetes is not"),
        ({"url": "http://a.b.c", "bindings": ["kubernetes"]}, "endpoints.0.bindings: a.b.c is not a service"),
        ({"url": "tcp://", "upstream": {"url": "web"}}, "endpoints.0.upstream.url: 'web' has no port"),
        ({"url": "tls://a.example.com", "upstream": {"url": "web"}}, "endpoints.0.upstream.url: 'web' has no port"),
        ({"agent_tls_termination": {}}, "endpoints.0.agent_tls_termination: does not apply to an endpoint of https"),
        (
            {"traffic_policy": {"on_tcp_connect": []}, "traffic_policy_file": "a"},
            "endpoints.0.traffic_policy_file: cannot be combined",
        ),
    ],
)
def test_settings_of_an_endpoint_that_an_agent_refuses_are_errors(settings: dict[str, Any], finding: str) -> None:
    assert [found for found in check_endpoint(**settings) if found.startswith(finding)]


@pytest.mark.parametrize(
    ("spec", "findings"),
    [
        ({"version": "2", "endpoints": [WEB]}, ["endpoints: is a setting of version 3"]),
        ({"version": "2", "connect_url": "a:1"}, ["connect_url: is a setting of version 3"]),
        ({"version": "2", "connect_cas": "host"}, ["connect_cas: is a setting of version 3"]),
        ({"version": "3", "server_addr": "a:1"}, ["server_addr: is a setting of version 2"]),
        ({"version": "3", "root_cas": "host"}, ["root_cas: is a setting of version 2"]),
        ({"endpoints": [WEB], "server_addr": "a:1"}, ["server_addr: is a setting of version 2"]),
        ({"endpoints": [WEB], "connect_url": "a:1"}, []),
        ({"tunnels": {"a": HTTP}, "server_addr": "a:1"}, []),
        ({"version": "3", "tunnels": {"a": HTTP}}, ["tunnels: are deprecated in version 3"]),
        (
            {"version": "3", "tunnels": {"a": {"labels": ["a=b"], "addr": "80"}}},
            ["tunnels.a.labels: do not exist in version 3", "tunnels: are deprecated in version 3"],
        ),
        ({"endpoints": [WEB, WEB]}, ["endpoints.1.name: 'web' is the name of another"]),
        (
            {"endpoints": [WEB], "tunnels": {"web": HTTP}},
            ["endpoints.0.name: 'web' is the name of another", "tunnels: are deprecated in version 3"],
        ),
        ({"ingress": "agin_1", "connect_url": "a:1"}, ["connect_url: cannot be combined with ingress"]),
    ],
)
def test_a_configuration_has_settings_of_one_version(spec: dict[str, Any], findings: list[str]) -> None:
    found = [format_finding(finding) for finding in check_spec("AgentConfig", spec)]
    assert len(found) == len(findings)
    assert all(text.startswith(start) for text, start in zip(found, findings, strict=True))


@pytest.mark.parametrize(
    ("path", "more"),
    [
        ("version", {"version": "4"}),
        ("web_addr", {"web_addr": True}),
        ("log", {"log": True}),
        ("console_ui", {"console_ui": "no"}),
        ("log_level", {"log_level": "trace"}),
        ("heartbeat_interval", {"heartbeat_interval": "10"}),
        ("connect_url", {"connect_url": "tls://a.example.com:443"}),
        ("metadata", {"metadata": "x" * 4097}),
        ("endpoints.0.upstream", {"endpoints": [{"name": "a"}]}),
        ("endpoints.0.name", {"endpoints": [{"upstream": {"url": "80"}}]}),
        ("endpoints.0.url", {"endpoints": [{**WEB, "url": "https://a.example.com:8443"}]}),
        ("endpoints.0.url", {"endpoints": [{**WEB, "url": "https://a.example.com/path"}]}),
        ("endpoints.0.url", {"endpoints": [{**WEB, "url": "tcp://a.example.com"}]}),
        ("endpoints.0.upstream.url", {"endpoints": [{**WEB, "upstream": {"url": "tcp://localhost:22"}}]}),
        ("endpoints.0.upstream.protocol", {"endpoints": [{**WEB, "upstream": {"url": "80", "protocol": "https"}}]}),
        ("endpoints.0.bindings", {"endpoints": [{**WEB, "bindings": ["private"]}]}),
        ("tunnels.t.terminate_at", {"tunnels": {"t": {**HTTP, "terminate_at": "home"}}}),
        ("tunnels.t.basic_auth", {"tunnels": {"t": {**HTTP, "basic_auth": ["berlin:short"]}}}),
        ("tunnels.t.basic_auth", {"tunnels": {"t": {**HTTP, "basic_auth": [f"{'x' * 129}:long-enough"]}}}),
        ("tunnels.t.oidc.client_secret", {"tunnels": {"t": {**HTTP, "oidc": {"issuer_url": "u", "client_id": "i"}}}}),
        ("tunnels.t.policy", {"tunnels": {"t": {**HTTP, "policy": {}}}}),
    ],
)
def test_a_value_that_no_agent_reads_is_refused_at_its_place(path: str, more: dict[str, Any]) -> None:
    assert refuses("AgentConfig", path, **more)


@pytest.mark.parametrize(
    "url",
    [
        "",
        "tcp://",
        "https://",
        "a.example.com",
        "https://a.example.com:443",
        "https://a.internal:8443",
        "tcp://a.internal:5",
    ],
)
def test_the_url_of_an_endpoint_has_every_documented_form(url: str) -> None:
    upstream = {"url": "localhost:80"}
    assert check_endpoint(url=url, upstream=upstream) == []
