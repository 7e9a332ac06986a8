"""`import`: manifests for what exists, from first sight to a plan that changes nothing."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.harness.platform import Sandbox
from tests.harness.project import Project, policies, resource
from tests.sandbox.account import Account

SECRET = "signed with this and nothing else"


@pytest.fixture
def shop(sandbox: Sandbox) -> dict[str, Any]:
    """A small account that somebody made by hand: ids by what they are."""
    account = Account(sandbox)
    policy = account.id("/ip_policies", description="Office", metadata='{"team": "edge"}')
    domain = account.make("/reserved_domains", domain="shop.example.com")["id"]
    edge = account.id("/edges/https", hostports=["shop.example.com:443"])
    route = account.id(f"/edges/https/{edge}/routes", match="/hooks/")
    sandbox.put(
        f"/edges/https/{edge}/routes/{route}/webhook_verification",
        {"provider": "github", "secret": SECRET},
    )
    sandbox.put(f"/edges/https/{edge}/routes/{route}/ip_restriction", {"ip_policy_ids": [policy]})
    certificate = account.id("/tls_certificates")
    bot = account.id("/bot_users", name="Berlin")
    token = account.id("/credentials", owner_id=bot, description="no")
    sandbox.forget_log()
    return {"policy": policy, "domain": domain, "certificate": certificate, "bot": bot, "token": token}


def test_from_import_to_a_plan_without_changes(on_sandbox: Project, sandbox: Sandbox, shop: dict[str, Any]) -> None:
    result = on_sandbox("import")
    assert (result.code, result.err) == (0, "")
    assert result.out == (
        "manifests/bot-user.yaml: 1 resource\n"
        "manifests/reserved-domain.yaml: 1 resource\n"  # it came with the edge
        "manifests/services/shop.example.com.yaml: 4 resources\n"
        "manifests/tls-certificate.yaml: 1 resource\n"
        "manifests/tunnel-credential.yaml: 1 resource\n"
    )
    assert on_sandbox("validate").code == 0
    assert on_sandbox("fmt", "--check").code == 0
    result = on_sandbox("plan", "--adopt")
    assert "0 to create, 0 to update, 0 to replace, 0 to delete, 7 to adopt" in result.out
    assert "7 API calls" in result.out  # a bot user has no metadata: it is in sync
    assert on_sandbox("apply", "--adopt", "-y").code == 0
    assert on_sandbox("plan", "--detailed-exitcode").code == 0


def test_import_sends_nothing_but_reads(on_sandbox: Project, sandbox: Sandbox, shop: dict[str, Any]) -> None:
    assert on_sandbox("import").code == 0
    assert sandbox.calls() == []


def test_ids_become_references_and_long_texts_files(on_sandbox: Project, shop: dict[str, Any]) -> None:
    on_sandbox("import")
    root = on_sandbox.root / "manifests"
    edge = (root / "services/shop.example.com.yaml").read_text().split("---\n")[0]
    assert edge.partition("routes:\n")[2] == (
        "  hooks:\n"
        "    lifecycle:\n"
        "      # Secret values cannot be imported and stay unmanaged; declare them to manage them.\n"
        "      ignore: [webhook_verification.secret]\n"
        "    match_type: path_prefix\n"
        "    match: /hooks/\n"
        "    ip_restriction:\n"
        "      ip_policy_ids:\n"
        "        - {ref: IPPolicy/office}\n"
        "    webhook_verification:\n"
        "      provider: github\n"
    )
    pem = root / "files/tls-certificate/leaf.certificate_pem.pem"
    assert pem.read_text().startswith("-----BEGIN CERTIFICATE-----\n")
    assert pem.stat().st_mode & 0o777 == 0o644


def test_no_secret_is_written_or_shown(on_sandbox: Project, shop: dict[str, Any]) -> None:
    result = [
        on_sandbox("import", "--dry-run"),
        on_sandbox("import", "--format", "json"),
        on_sandbox("plan", "--adopt"),
    ]
    written = "".join(file.read_text() for file in on_sandbox.root.rglob("manifests/**/*") if file.is_file())
    assert written != ""
    assert not any(secret in text for secret in (SECRET, "PRIVATE KEY") for text in (written, str(result)))


def test_a_second_import_finds_everything_declared(on_sandbox: Project, shop: dict[str, Any]) -> None:
    on_sandbox("import")
    result = on_sandbox("import")
    assert (result.code, result.out, result.err) == (
        0,
        "",
        "Nothing to import: all objects that can be declared are declared.\n",
    )


def test_the_same_account_is_written_the_same(on_sandbox: Project, shop: dict[str, Any]) -> None:
    on_sandbox("import", "--out", "elsewhere")
    before = {file: file.read_bytes() for file in on_sandbox.root.rglob("elsewhere/**/*") if file.is_file()}
    result = on_sandbox("import", "--out", "elsewhere")
    assert result.code == 0
    assert "elsewhere/services/shop.example.com.yaml: 4 resources (unchanged)\n" in result.out
    assert "elsewhere is not read by the project; add it under `manifests` in reconciler.yaml\n" in result.err
    assert before == {file: file.read_bytes() for file in on_sandbox.root.rglob("elsewhere/**/*") if file.is_file()}


def test_a_file_with_other_content_fails_the_import_before_anything_is_written(
    on_sandbox: Project, shop: dict[str, Any]
) -> None:
    on_sandbox.write("manifests/services/shop.example.com.yaml", "# mine\n")
    result = on_sandbox("import")
    assert result.code == 1
    assert result.err == (
        "error: manifests/services/shop.example.com.yaml exists with other content\n"
        "nothing was written; name another folder with --out, or add to these manifests with --append\n"
    )
    files = [file.name for file in (on_sandbox.root / "manifests").rglob("*") if file.is_file()]
    assert files == ["shop.example.com.yaml"]


def test_appending_to_a_manifest_does_not_change_its_text(on_sandbox: Project, shop: dict[str, Any]) -> None:
    before = "# mine\nkind:   IPPolicy  # with a comment\nname: other\nspec: {description: other}\n# the end"
    on_sandbox.write("manifests/ip-policy.yaml", before)
    assert on_sandbox("import", "--append", "--kind", "IPPolicy").code == 0
    text = (on_sandbox.root / "manifests/ip-policy.yaml").read_text()
    assert text == (
        f"{before}\n---\nkind: IPPolicy\nname: office\nid: {shop['policy']}\n"
        'spec:\n  description: Office\n  metadata: "{\\"team\\": \\"edge\\"}"\n'
    )


def test_the_file_of_a_service_is_added_to(on_sandbox: Project, shop: dict[str, Any]) -> None:
    on_sandbox.write("manifests/services/shop.example.com.yaml", "# mine\n")
    assert on_sandbox("import", "--append").code == 0
    text = (on_sandbox.root / "manifests/services/shop.example.com.yaml").read_text()
    assert text.startswith("# mine\n---\nkind: HTTPSEdge\n")
    assert [line for line in text.splitlines() if line.startswith("kind: ")] == [
        "kind: HTTPSEdge",
        "kind: IPPolicy",
        "kind: ReservedDomain",
    ]


def test_an_object_of_two_services_is_imported_into_the_file_of_its_kind(
    on_sandbox: Project, sandbox: Sandbox, shop: dict[str, Any]
) -> None:
    edge = Account(sandbox).id("/edges/tls", description="other")
    sandbox.put(f"/edges/tls/{edge}/ip_restriction", {"ip_policy_ids": [shop["policy"]]})
    assert on_sandbox("import", "--kind", "HTTPSEdge").out == "manifests/services/shop.example.com.yaml: 1 resource\n"
    result = on_sandbox("import")
    assert "manifests/ip-policy.yaml: 1 resource\n" in result.out
    assert "manifests/services/other.yaml: 2 resources\n" in result.out
    assert "manifests/reserved-domain.yaml: 2 resources\n" in result.out  # their edge was imported before
    assert on_sandbox("plan", "--adopt").code == 0


def test_nothing_is_added_to_a_file_that_would_say_something_else_then(
    on_sandbox: Project, shop: dict[str, Any]
) -> None:
    before = "kind: IPPolicy\nname: other\nspec:\n  metadata: |\n    hello"
    on_sandbox.write("manifests/ip-policy.yaml", before)
    result = on_sandbox("import", "--append", "--kind", "IPPolicy")
    assert (result.code, result.err) == (
        1,
        "error: manifests/ip-policy.yaml cannot be appended to: its last document would change\n"
        "nothing was written; end its last line with a line break, or name another folder with --out\n",
    )
    assert {path.name: path.read_text() for path in (on_sandbox.root / "manifests").iterdir()} == {
        "ip-policy.yaml": before
    }


def test_only_what_is_added_to_is_read(on_sandbox: Project, shop: dict[str, Any]) -> None:
    (on_sandbox.root / "other/foo.yaml").mkdir(parents=True)
    (on_sandbox.root / "other/bad.yaml").write_bytes(b"a: \xff\n")
    on_sandbox.write("other/bot-user.yaml", "# mine\n")
    assert on_sandbox("import", "--append", "--out", "other", "--kind", "BotUser").code == 0
    (on_sandbox.root / "other/ip-policy.yaml").write_bytes(b"a: \xff\n")
    result = on_sandbox("import", "--append", "--out", "other", "--kind", "IPPolicy")
    assert (result.code, result.err.splitlines()[0]) == (
        1,
        "other/ip-policy.yaml:1:4: not UTF-8: byte 0xff at offset 3; save the file as UTF-8",
    )


def test_an_import_into_a_folder_of_manifests_has_no_warning(on_sandbox: Project, shop: dict[str, Any]) -> None:
    settings = (on_sandbox.root / "reconciler.yaml").read_text()
    on_sandbox.write("all.manifests", "")
    on_sandbox.write("reconciler.yaml", f'{settings}manifests: [all.manifests, "./manifests"]\n')
    result = on_sandbox("import", "--kind", "BotUser")
    assert (result.code, result.out, result.err) == (0, "manifests/bot-user.yaml: 1 resource\n", "")


def test_a_dry_run_prints_the_files_and_writes_none(on_sandbox: Project, shop: dict[str, Any]) -> None:
    result = on_sandbox("import", "--dry-run", "--kind", "IPPolicy")
    assert result.out.startswith("# manifests/ip-policy.yaml\nkind: IPPolicy\nname: office\n")
    assert list((on_sandbox.root / "manifests").iterdir()) == []


def test_a_dry_run_escapes_control_characters(on_sandbox: Project, sandbox: Sandbox) -> None:
    policy = '{"on_http_request": [{"name": "\u202e::error::x", "actions": [{"type": "deny"}]}]}'
    Account(sandbox).make("/endpoints", traffic_policy=policy, description="\x1b[2J")
    result = on_sandbox("import", "--dry-run", "--kind", "CloudEndpoint")
    assert not {"\x1b", "\u202e"} & set(result.out)


def test_json_of_an_import_lists_resources_files_and_skipped_objects(on_sandbox: Project, shop: dict[str, Any]) -> None:
    report = json.loads(on_sandbox("import", "--dry-run", "--format", "json", "--target", "BotUser/*").out)
    assert report == {
        "version": 1,
        "resources": [
            {"address": "BotUser/berlin", "kind": "BotUser", "id": shop["bot"], "file": "manifests/bot-user.yaml"}
        ],
        "files": [{"path": "manifests/bot-user.yaml", "text": "kind: BotUser\nname: berlin\nspec:\n  name: Berlin\n"}],
        "left_out": [],
    }


def test_only_selected_objects_are_imported_and_ids_of_others_remain(on_sandbox: Project, shop: dict[str, Any]) -> None:
    on_sandbox("import", "--kind", "TunnelCredential")
    assert [file.name for file in (on_sandbox.root / "manifests").iterdir()] == ["tunnel-credential.yaml"]
    assert f"owner_id: {shop['bot']}\n" in (on_sandbox.root / "manifests/tunnel-credential.yaml").read_text()


def test_an_object_that_no_manifest_can_declare_is_reported_and_the_rest_imported(
    on_sandbox: Project, sandbox: Sandbox
) -> None:
    account = Account(sandbox)
    odd = account.id("/ip_policies", description="odd", metadata='{"reconciler": "ours"}')
    account.make("/ip_policies", description="even")
    result = on_sandbox("import")
    assert result.code == 5
    assert (
        result.err
        == f"not imported: IPPolicy {odd}: metadata: holds 'reconciler', the reserved key of the owner record\n"
    )
    assert "name: even\n" in (on_sandbox.root / "manifests/ip-policy.yaml").read_text()


def test_objects_of_another_stack_are_imported_only_with_all(
    on_sandbox: Project, sandbox: Sandbox, shop: dict[str, Any]
) -> None:
    on_sandbox.declare(resource("IPPolicy", "theirs", description="Theirs"))
    on_sandbox("apply", "-y")
    (on_sandbox.root / "manifests/all.yaml").unlink()
    on_sandbox.write("reconciler.yaml", "version: 1\nstack: other\n")
    result = on_sandbox("import", "--dry-run", "--kind", "IPPolicy")
    assert "is managed by stack prod as IPPolicy/theirs\n" in result.err
    assert "Theirs" not in result.out
    assert "belongs to" not in on_sandbox("import", "--dry-run", "--kind", "BotUser").err
    result = on_sandbox("import", "--dry-run", "--kind", "IPPolicy", "--all")
    assert "description: Theirs\n" in result.out
    assert (
        "is managed by stack prod as IPPolicy/theirs; "
        "declare `ensure: forgotten` there and apply it before you apply this stack\n" in result.err
    )


def test_a_resource_that_an_environment_excludes_is_not_imported(on_sandbox: Project) -> None:
    on_sandbox.declare(resource("IPPolicy", "office", description="Office"))
    on_sandbox.write("environments/prod.yaml", "IPPolicy/office: null\n")
    assert on_sandbox("apply", "-y", "--quiet").code == 0
    result = on_sandbox("import", "--env", "prod")
    assert (result.code, "which this environment excludes (environments/prod.yaml:1:1)" in result.err) == (0, True)
    assert on_sandbox("validate").code == 0


def test_an_ephemeral_endpoint_is_skipped_by_the_import_with_the_reason(on_sandbox: Project, sandbox: Sandbox) -> None:
    sandbox.plant("/endpoints", {"id": "ep_2vJ0QmZr8sT1uV3wX5yZ7aB9cD4", "type": "ephemeral", "url": "https://a.b"})
    assert on_sandbox("import").err == (
        "skipped: Endpoint ep_2vJ0QmZr8sT1uV3wX5yZ7aB9cD4: it exists only while the tunnel of an agent is open\n"
        "Nothing to import: all objects that can be declared are declared.\n"
    )


def test_an_import_creates_the_folder_of_manifests(on_sandbox: Project, shop: dict[str, Any]) -> None:
    (on_sandbox.root / "manifests").rmdir()
    assert on_sandbox("import").code == 0
    assert (on_sandbox.root / "manifests/bot-user.yaml").exists()


@pytest.mark.parametrize("folder", ["../elsewhere", "/tmp"])  # noqa: S108 - to be refused
def test_nothing_is_written_outside_the_project(on_sandbox: Project, folder: str) -> None:
    result = on_sandbox("import", "--out", folder)
    assert (result.code, result.err.startswith("error: --out: ")) == (64, True)


def test_nothing_is_written_through_a_symlink(on_sandbox: Project, shop: dict[str, Any]) -> None:
    (on_sandbox.root / "manifests").rmdir()
    (on_sandbox.root.parent / "outside").mkdir()
    (on_sandbox.root / "linked").symlink_to(on_sandbox.root.parent / "outside")
    result = on_sandbox("import", "--out", "linked")
    assert (result.code, list((on_sandbox.root.parent / "outside").iterdir())) == (1, [])
    assert result.err == "error: linked/bot-user.yaml leads through a symlink; use a folder that is not a symlink\n"


def test_an_unknown_kind_is_an_error_that_suggests_a_similar_one(on_sandbox: Project) -> None:
    result = on_sandbox("import", "--kind", "IPPolice")
    assert (result.code, "did you mean IPPolicy?" in result.err) == (64, True)


def test_an_imported_object_may_be_replaced_later(on_sandbox: Project, sandbox: Sandbox) -> None:
    """Its `id:` then names what is gone; whose the new one is, its record says."""
    account = Account(sandbox)
    account.make("/ssh_host_certificates", description="build", principals=["a.example.com"])
    on_sandbox("import")
    on_sandbox("apply", "--adopt", "-y")
    file = on_sandbox.root / "manifests/ssh-host-certificate.yaml"
    file.write_text(file.read_text().replace("a.example.com", "b.example.com"))
    assert on_sandbox("apply", "-y").code == 0
    assert on_sandbox("plan", "--detailed-exitcode").code == 0


def test_a_certificate_without_a_known_private_key_cannot_be_created_again(
    on_sandbox: Project, sandbox: Sandbox
) -> None:
    made = Account(sandbox).id("/tls_certificates")
    on_sandbox("import")
    on_sandbox("apply", "--adopt", "-y")
    sandbox.delete(f"/tls_certificates/{made}")
    result = on_sandbox("plan")
    assert result.code == 1
    assert "cannot be created" in result.out


def test_a_traffic_policy_is_written_as_yaml_that_drift_can_be_accepted_into(
    on_sandbox: Project, sandbox: Sandbox
) -> None:
    policy: dict[str, Any] = {
        "on_http_request": [
            {
                "name": "no ${{ var.x }}: <<",
                "expressions": ["req.method == 'GET'", "true &&\n  req.url.path != ''"],
                "actions": [
                    {"type": "custom-response", "config": {"status_code": 403, "body": "a\n  b\n", "headers": {}}}
                ],
            }
        ]
    }
    account = Account(sandbox)
    account.make("/reserved_domains", domain="a.example.com")
    made = account.make("/endpoints", url="https://a.example.com", traffic_policy=json.dumps(policy))
    assert on_sandbox("import").code == 0
    (manifest,) = (on_sandbox.root / "manifests/services").iterdir()
    written = manifest.read_text()
    assert "  traffic_policy:\n    on_http_request:\n      - name:" in written
    assert not (on_sandbox.root / "files").exists()
    assert not (on_sandbox.root / "manifests" / "files").exists()
    assert on_sandbox("validate").code == 0
    assert on_sandbox("fmt", "--check").code == 0
    assert on_sandbox("apply", "--adopt", "-y").code == 0
    policy["on_http_request"][0]["actions"][0]["config"]["status_code"] = 404
    sandbox.patch(f"/endpoints/{made['id']}", {"traffic_policy": json.dumps(policy)})
    result = on_sandbox("accept")
    assert result.code in (0, 2), result
    assert "404" in manifest.read_text()
    assert on_sandbox("plan", "--detailed-exitcode").code == 0


def test_an_edge_at_a_reserved_address_is_imported_with_a_reference_to_it(
    on_sandbox: Project, sandbox: Sandbox
) -> None:
    account = Account(sandbox)
    address = account.make("/reserved_addrs", description="ssh")
    account.id("/edges/tcp", hostports=[address["addr"]])
    assert on_sandbox("import").code == 0
    text = (on_sandbox.root / "manifests/services/1.tcp.eu.sandbox.test-20000.yaml").read_text()
    assert "  hostports:\n    - {ref: ReservedAddress/ssh.addr}\n" in text
    assert on_sandbox("validate").code == 0
    result = on_sandbox("plan", "--adopt")
    assert "0 to create, 0 to update, 0 to replace, 0 to delete, 3 to adopt" in result.out  # one came with the edge
    assert on_sandbox("apply", "--adopt", "-y").code == 0
    assert on_sandbox("plan", "--detailed-exitcode").code == 0


def test_a_target_that_matches_nothing_does_not_say_that_all_is_declared(
    on_sandbox: Project, sandbox: Sandbox, shop: dict[str, Any]
) -> None:
    on_sandbox("import", "--kind", "IPPolicy", "--out", "other")
    sandbox.plant("/endpoints", {"id": "ep_2vJ0QmZr8sT1uV3wX5yZ7aB9cD4", "type": "ephemeral", "url": "https://a.b"})
    result = on_sandbox("import", "--target", "IPPolicy/nobody")
    assert (result.code, result.out, result.err) == (
        0,
        "",
        "Nothing to import: no undeclared object matches --kind, --target and --exclude; `list` shows all objects.\n",
    )


def test_only_selected_objects_are_named_as_skipped(on_sandbox: Project, sandbox: Sandbox) -> None:
    on_sandbox.declare(*policies("a", "b"))
    assert on_sandbox("apply", "-y").code == 0
    settings = (on_sandbox.root / "reconciler.yaml").read_text()
    on_sandbox.write("reconciler.yaml", settings.replace("stack: prod", "stack: other"))
    (on_sandbox.root / "manifests/all.yaml").unlink()
    result = on_sandbox("import", "--target", "IPPolicy/a")
    assert "as IPPolicy/a\n" in result.err
    assert "IPPolicy/b" not in result.err
    identity = next(item["id"] for item in sandbox.get("/ip_policies")["ip_policies"] if item["description"] == "b")
    result = on_sandbox("import", "--target", f"IPPolicy/{identity}")
    assert ("as IPPolicy/b\n" in result.err, "IPPolicy/a" in result.err) == (True, False)


def test_an_empty_traffic_policy_is_imported_with_a_warning(on_sandbox: Project, sandbox: Sandbox) -> None:
    account = Account(sandbox)
    account.make("/reserved_domains", domain="shop.example.com")
    account.make("/endpoints", url="https://shop.example.com", traffic_policy="{}")
    account.make("/edges/tls", hostports=[], traffic_policy={"value": "{}"})
    result = on_sandbox("import")
    assert result.code == 0
    written = "\n".join(path.read_text() for path in sorted((on_sandbox.root / "manifests").rglob("*.yaml")))
    assert "  traffic_policy: {}\n" in written
    validated = on_sandbox("validate")
    assert validated.code == 0
    assert (validated.out + validated.err).count("the policy is empty: no rule applies to the traffic") == 2
    assert on_sandbox("apply", "--adopt", "-y").code == 0
    assert on_sandbox("plan", "--detailed-exitcode").code == 0


def test_the_fields_and_filter_of_event_sources_are_imported_and_survive_an_added_source(
    on_sandbox: Project, sandbox: Sandbox
) -> None:
    source = {"type": "http_request_complete.v0", "fields": ["http.request.method", "conn.client_ip"], "filter": "true"}
    made = sandbox.post("/event_subscriptions", {"description": "audit", "sources": [source]})
    assert on_sandbox("import").code == 0
    (manifest,) = (on_sandbox.root / "manifests").rglob("*.yaml")
    written = manifest.read_text()
    assert "fields: [http.request.method, conn.client_ip]" in written or "- http.request.method\n" in written
    assert 'filter: "true"' in written
    assert on_sandbox("apply", "--adopt", "-y").code == 0
    assert on_sandbox("plan", "--detailed-exitcode").code == 0
    # Somebody who declares only the types keeps what the platform has besides.
    head, _, entry = written.partition("sources:\n")
    key = entry.partition(":")[0].strip()
    sources = f"  {key}: {{type: http_request_complete.v0}}\n  more: {{type: vault_created.v0}}\n"
    manifest.write_text(f"{head}sources:\n{sources}")
    assert on_sandbox("apply", "-y").code == 0
    sources = sandbox.get(f"/event_subscriptions/{made['id']}")["sources"]
    assert [{name: value for name, value in found.items() if name != "uri"} for found in sources] == [
        source,
        {"type": "vault_created.v0"},
    ]
    assert on_sandbox("plan", "--detailed-exitcode").code == 0
