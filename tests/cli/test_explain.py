"""`explain`: the source of each value and its value on the platform, fields, manifest keys and codes."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

import click
import pytest

from reconciler import kinds
from reconciler.cli.terminal import lookup
from reconciler.model.codes import CODES
from reconciler.model.fields.field import Field, fields_of
from reconciler.project.documents.manifest_document import ManifestDocument
from tests.harness.platform import Sandbox
from tests.harness.project import Output, Shell

PROJECT = """\
stack: prod
variables: {region: {type: string, default: eu}}
defaults: {IPPolicy: {spec: {metadata: by Git}}}
"""
OFFICES = """\
kind: IPPolicy
name: "office-${{ each.key }}"
for_each: {berlin: {floor: 3}}
spec:
  description: Floor ${{ each.value.floor }} in ${{ var.region }}
"""
SECRETIVE = """\
kind: EventDestination
name: hook
spec:
  target: {metrics: {api_key: "hunter2-${{ var.region }}", service: edge}}
"""


def write_project(shell: Shell) -> None:
    shell.write("reconciler.yaml", PROJECT)
    shell.write("manifests/payments.yaml", OFFICES)
    shell.write("environments/prod.yaml", "variables: {region: us}\nIPPolicy/office-berlin: {spec: {metadata: mine}}\n")


def test_a_value_is_traced_through_items_and_variables(shell: Shell) -> None:
    write_project(shell)
    assert shell("explain", "IPPolicy/office-berlin.description", "--env", "prod").out == (
        'IPPolicy/office-berlin.description: "Floor 3 in us"\n'
        '  manifests/payments.yaml:5:16  manifest                                  "Floor ${{ each.value.flo…\n'
        "  manifests/payments.yaml:3:28    for_each                                3\n"
        '  environments/prod.yaml:1:21     variable region, from environment prod  "us"\n'
    )


def test_an_overridden_value_is_shown_below_its_overlay(shell: Shell) -> None:
    write_project(shell)
    result = shell("explain", "IPPolicy/office-berlin.metadata", "--env", "prod").out
    assert [line.split()[0] for line in result.splitlines()[1:]] == [
        "environments/prod.yaml:2:43",
        "reconciler.yaml:3:40",
    ]
    assert result.splitlines()[2].endswith('"by Git" (overridden)')


def test_an_overridden_value_is_marked_on_a_narrow_terminal(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    write_project(shell)
    monkeypatch.setenv("COLUMNS", "60")
    covered = shell("explain", "IPPolicy/office-berlin.metadata", "--env", "prod").out.splitlines()[2]
    assert covered.endswith("… (overridden)")
    assert len(covered) == 60


def test_an_undeclared_value_is_explained_as_the_default(shell: Shell) -> None:
    assert "not declared: the documented default" in shell("explain", "TLSEdge/payments.description").out


def test_a_secret_in_a_manifest_is_not_shown(shell: Shell) -> None:
    shell.write("reconciler.yaml", PROJECT)
    shell.write("manifests/payments.yaml", SECRETIVE)
    result = shell("explain", "EventDestination/hook", "--var", "region=hunter2")
    assert "EventDestination/hook.target.metrics.api_key: (sensitive)" in result.out
    assert "hunter2" not in result.out + result.err


SECRETS = """\
kind: Secret
name: "${{ each.key }}"
for_each: {db: {value: hunter2}}
spec: {vault_id: vault_1, name: "${{ each.key }}", value: "${{ each.value.value }}"}
---
kind: Secret
name: s
spec: {vault_id: vault_1, name: s, value: hunter2}
---
kind: HTTPSEdgeRoute
name: "${{ each.key }}"
for_each: {hook: {provider: github, secret: hunter2}}
spec: {edge_id: edghts_1, match_type: path_prefix, match: "/${{ each.key }}", webhook_verification: "${{ each.value }}"}
"""


@pytest.mark.parametrize(
    ("what", "lines"),
    [
        ("Secret/db.name", ['manifests/payments.yaml:3:12 for_each "db"']),
        ("HTTPSEdgeRoute/hook.match", ['manifests/payments.yaml:12:12 for_each "hook"']),
        ("HTTPSEdgeRoute/hook.webhook_verification.provider", ["manifests/payments.yaml:12:18 for_each a map"]),
        (
            "Secret/s",
            [
                'manifests/payments.yaml:8:7 manifest {"name":"s","value":"(sensitive)","vault_id":"vault_1"} '
                "(overridden)"
            ],
        ),
        (
            "HTTPSEdgeRoute/hook.webhook_verification",
            [
                'manifests/payments.yaml:13:101 manifest "${{ each.value }}" (overridden)',
                "manifests/payments.yaml:12:18 for_each a map (overridden)",
            ],
        ),
    ],
)
def test_a_value_that_contains_a_secret_is_shown_without_it(
    shell: Shell, monkeypatch: pytest.MonkeyPatch, what: str, lines: list[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    shell.write("manifests/payments.yaml", SECRETS)
    shell.write(
        "environments/prod.yaml",
        "Secret/s: {ensure: forgotten, spec: null}\nHTTPSEdgeRoute/hook: {spec: {webhook_verification: null}}\n",
    )
    result = shell("explain", what, *(["--env", "prod"] if "(overridden)" in lines[0] else []))
    printed = [" ".join(line.split()) for line in result.out.splitlines()]
    assert printed[-len(lines) :] == lines
    assert "hunter2" not in result.out + result.err


def test_a_value_from_a_map_in_a_variable_is_traced_to_it(shell: Shell) -> None:
    shell.write("reconciler.yaml", "stack: prod\nvariables: {tls: {type: map, default: {min_version: '1.3'}}}\n")
    shell.write(
        "manifests/payments.yaml",
        "kind: TLSEdge\nname: e\nspec: {hostports: ['a.example.com:443'], tls_termination: '${{ var.tls }}'}\n",
    )
    assert shell("explain", "TLSEdge/e.tls_termination.min_version").out == (
        'TLSEdge/e.tls_termination.min_version: "1.3"\n'
        '  manifests/payments.yaml:3:59  manifest                      "${{ var.tls }}"\n'
        "  reconciler.yaml:2:39            variable tls, from default  a map\n"
    )
    result = shell("explain", "TLSEdge/e.tls_termination.terminate_at").out
    assert "not declared" in result
    shell.write("environments/prod.yaml", "TLSEdge/e: {spec: {tls_termination: {terminate_at: edge}}}\n")
    result = shell("explain", "TLSEdge/e.tls_termination.min_version", "--env", "prod").out
    assert result.splitlines()[0].endswith("(not set)")
    assert result.splitlines()[-1].endswith("a map (overridden)")


@pytest.mark.parametrize(
    ("what", "why"),
    [
        ("IPPolicy/office.description[0]", "no items in IPPolicy.description: its type is text"),
        ("IPPolicy/office.description.x", "no fields in IPPolicy.description: its type is text"),
        ("TLSEdge/payments.hostports.x", "select an item of the list, as in TLSEdge.hostports[0]"),
        ("TLSEdge/payments.tls_termination[0]", "no items in TLSEdge.tls_termination: its type is object"),
        ("TLSEdge/payments.mutual_tl", "unknown field 'mutual_tl' in TLSEdge; did you mean mutual_tls?"),
    ],
)
def test_an_unknown_path_is_refused(shell: Shell, what: str, why: str) -> None:
    result = shell("explain", what)
    assert (result.code, result.err.splitlines()[0]) == (64, f"error: {why}")


def test_every_path_that_explain_prints_is_accepted_by_it(shell: Shell) -> None:
    shell.write(
        "manifests/payments.yaml",
        "kind: TunnelGroupBackend\nname: b\nspec: {labels: {app: shop}}\n---\n"
        "kind: CloudEndpoint\nname: e\nspec: {url: https://a.example.com, traffic_policy: {on_http_request: []}}\n",
    )
    for what, path, value in (
        ("TunnelGroupBackend/b", "labels.app", '"shop"'),
        ("CloudEndpoint/e", "traffic_policy.on_http_request", "[]"),
    ):
        assert f"{what}.{path}: {value}" in shell("explain", what).out
        assert shell("explain", f"{what}.{path}").code == 0


def test_a_secret_on_the_platform_is_not_shown(shell: Shell, sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    hook = SECRETS.rpartition("---\n")[2].replace("edge_id: edghts_1", "edge_id: {ref: HTTPSEdge/e}")
    shell.write(
        "manifests/payments.yaml",
        f"kind: HTTPSEdge\nname: e\nspec: {{hostports: []}}\n---\n{hook}",
    )
    assert shell("apply", "-y", "--quiet").code == 0
    shell.write("environments/prod.yaml", "HTTPSEdgeRoute/hook: {spec: {webhook_verification: null}}\n")
    result = shell("explain", "HTTPSEdgeRoute/hook.webhook_verification", "--live", "--env", "prod")
    value = '{"enabled":true,"provider":"github","secret":"(sensitive)"}'
    assert live(result.out) == [f"on the platform, changed in Git {value}"]
    assert "hunter2" not in result.out + result.err


def test_explain_live_shows_a_value_that_changed_on_the_platform(shell: Shell, sandbox: Sandbox) -> None:
    shell("apply", "-y", "--quiet")
    (policy,) = sandbox.get("/ip_policies")["ip_policies"]
    sandbox.patch(f"/ip_policies/{policy['id']}", {"description": "moved"})
    result = shell("explain", "IPPolicy/office.description", "--live")
    assert result.out.splitlines()[-1].split(maxsplit=6) == [
        "on", "the", "platform,", "changed", "on", "the", 'platform  "moved"',
    ]  # fmt: skip


def test_explain_live_shows_values_that_are_in_sync(shell: Shell, sandbox: Sandbox) -> None:
    shell("apply", "-y", "--quiet")
    (policy,) = sandbox.get("/ip_policies")["ip_policies"]
    assert shell("plan").code == 0
    assert live(shell("explain", "IPPolicy/office.description", "--live").out) == ['on the platform "Office"']
    assert live(shell("explain", "TLSEdge/payments", "--live").out) == [
        'on the platform ["pay.example.com:443"]',
        f'on the platform ["{policy["id"]}"]',
    ]


def test_a_resource_that_does_not_exist_has_no_live_value(shell: Shell, sandbox: Sandbox) -> None:
    result = shell("explain", "IPPolicy/office.description", "--live")
    assert live(result.out) == ["on the platform (not set)"]


def test_an_input_only_value_is_not_shown_as_absent(
    shell: Shell, sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("METRICS_KEY", "canary")
    shell.write(
        "manifests/payments.yaml",
        "kind: EventDestination\nname: hook\n"
        "spec: {target: {metrics: {api_key: {from_env: METRICS_KEY}, service: edge}}}\n",
    )
    assert shell("apply", "-y", "--quiet").code == 0
    result = shell("explain", "EventDestination/hook", "--live")
    assert live(result.out) == ['on the platform "edge"']
    assert "canary" not in result.out + result.err


def test_an_object_that_could_not_be_listed_is_not_shown_as_absent(shell: Shell, sandbox: Sandbox) -> None:
    shell("apply", "-y", "--quiet")
    sandbox.fault("GET /ip_policies", then="status", status=400, times=0)
    result = shell("explain", "IPPolicy/office", "--live")
    assert live(result.out) == []
    assert "note: the live values of IPPolicy are unknown: " in result.err


def live(text: str) -> list[str]:
    """The lines about the platform, with single spaces."""
    return [" ".join(line.split()) for line in text.splitlines() if line.lstrip().startswith("on the platform")]


def test_an_undeclared_address_is_refused_with_a_suggestion(shell: Shell) -> None:
    result = shell("explain", "TLSEdge/payment")
    assert (result.code, "did you mean TLSEdge/payments?" in result.err) == (64, True)
    shell.write("manifests/tls.yaml", "kind: TCPEdge\nname: paymen\nspec: {}\n")
    for what, near in (("TLSEdge/paymen", "TLSEdge/payments"), ("TCPEdge/payments", "TCPEdge/paymen")):
        assert f"did you mean {near}?" in shell("explain", what).err.replace(f"{near}.", near)


BESIDE = [field.name for field in fields_of(ManifestDocument) if field.name != "name"]


@pytest.mark.parametrize("word", [*BESIDE, "for_each", "when"])
def test_every_manifest_key_is_explained(shell: Shell, word: str) -> None:
    result = shell("explain", f"TunnelCredential.{word}")
    assert result.code == 0
    assert result.out.startswith(f"TunnelCredential.{word} (")
    assert result.out.count("\n\n") >= 2  # the meaning and the place
    assert "A manifest key, at the same level as `spec`; examples are in docs/manifests.md" in result.out


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("HTTPSEdge.moved", "Former address, as in Kind/oldname"),
        ("HTTPSEdge.lifecycle.ignore", "Fields that are not managed"),
        ("TunnelCredential.rotate.after", "such as 90d"),
        ("TunnelCredential.deliver.to_dotenv", "* file  string. Path of the file"),
        ("TunnelCredential.deliver.token.to_dotenv.name", "Name of the entry."),
        ("HTTPSEdge.rotate", "HTTPSEdge does not support rotate: it has no one-time secret."),
        ("HTTPSEdge.deliver", "HTTPSEdge does not support deliver: it has no one-time secret."),
        ("AgentConfig.id", "AgentConfig does not support id: it is rendered to a file and has no object"),
        ("IPPolicy.rules", "Resources of the kind IPPolicyRule that belong to this one: a map from name to spec."),
        ("IPPolicy.rules.cidr", "IPPolicy.rules.cidr (string"),
        ("BotUser.name", "The name, unique among the bot users of the account."),  # a field of the spec has precedence
    ],
)
def test_a_manifest_key_is_explained_for_the_kind(shell: Shell, path: str, text: str) -> None:
    result = shell("explain", path)
    assert result.out.startswith(f"{path} (")
    assert text in result.out


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        ("TunnelCredential", "id, ensure, moved, lifecycle, deliver, rotate, for_each, when"),
        ("BotUser", "id, ensure, moved, lifecycle, for_each, when"),
        ("AgentConfig", "for_each, when"),
    ],
)
def test_a_kind_lists_the_manifest_keys_that_it_supports(shell: Shell, kind: str, words: str) -> None:
    assert shell("explain", kind).out.endswith(f"\nManifest keys: {words}\n")


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("BotUser.lifecycle.protct", "unknown field 'protct' in BotUser.lifecycle; did you mean protect?"),
        ("BotUser.moved.x", "unknown field 'x' in BotUser.moved; it is a single value"),
        ("BotUser.rotate.x", "unknown field 'x' in BotUser.rotate; its fields are "),
        ("TunnelCredential.lifecycle.token", "unknown field 'token' in TunnelCredential.lifecycle; "),
    ],
)
def test_an_unknown_key_within_a_manifest_key_is_an_error(shell: Shell, path: str, text: str) -> None:
    result = shell("explain", path)
    assert (result.code, text in result.err) == (64, True)


def test_the_live_value_is_that_of_a_resource(shell: Shell) -> None:
    result = shell("explain", "IPPolicy", "--live")
    assert (result.code, result.out) == (64, "")
    assert result.err.splitlines()[0] == (
        "error: --live requires a resource, as in `reconciler explain TLSEdge/payments --live`"
    )


@pytest.mark.parametrize("code", sorted(CODES))
def test_every_code_is_explained(shell: Shell, code: str) -> None:
    result = shell("explain", code)
    assert result.code == 0
    assert result.out.startswith(f"{code} (")
    assert CODES[code].remedy in " ".join(result.out.split())


def list_fields(fields: Sequence[Field], before: str = "") -> Iterator[tuple[str, Field]]:
    for field in fields:
        yield f"{before}{field.name}", field
        yield from list_fields(field.fields or (field.item.fields if field.item else ()), f"{before}{field.name}.")


def test_every_field_of_every_kind_is_found_by_its_path() -> None:
    paths = [(kind, *found) for kind in kinds.declarable() for found in list_fields(kind.fields)]
    assert len([path for _, path, _ in paths if path.count(".") > 1]) > 50
    for kind, path, field in paths:
        assert lookup.field(kind, path) is field, (kind.name, path)
        with pytest.raises(click.UsageError, match=f"unknown field 'xyzzy' in {re.escape(f'{kind.name}.{path}')}; "):
            lookup.field(kind, f"{path}.xyzzy")


def test_an_unknown_code_is_refused_with_a_suggestion(shell: Shell) -> None:
    result = shell("explain", "unknown-feild")
    assert result.code != 0
    assert "unknown code 'unknown-feild'; did you mean unknown-field?" in result.err


def test_a_field_is_explained_with_its_behaviors(shell: Shell) -> None:
    assert shell("explain", "ReservedDomain.region") == Output(
        0,
        """\
ReservedDomain.region (au | eu | ap | us | jp | in | sa)

Deprecated by the platform: domains are served in all regions.

- input only: never returned by the platform: compared by the digest in the owner record
- create only: sent when the object is created, and never compared: a later change has no effect
""",
        "",
    )


@pytest.mark.parametrize(
    ("word", "kind"),
    [("literal-secre", "code"), ("TLS-Edge", "kind"), ("tlsedg", "kind"), ("Literal-Secret", "kind")],
)
def test_a_lowercase_word_with_a_hyphen_is_a_code_and_others_are_kinds(shell: Shell, word: str, kind: str) -> None:
    result = shell("explain", word)
    assert (result.code, result.err.startswith(f"error: unknown {kind} '{word}'")) == (64, True), result.err
