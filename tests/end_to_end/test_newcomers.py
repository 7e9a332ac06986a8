"""`drift --unmanaged`: what somebody made by hand, by the name that an import would give it."""

from __future__ import annotations

from reconciler.model import owner_record
from reconciler.model.address import Address
from tests.harness.platform import Sandbox
from tests.harness.project import Project, policies, resource
from tests.kinds import pems


def test_new_unmanaged_objects_are_listed_on_request(on_sandbox: Project, sandbox: Sandbox) -> None:
    on_sandbox.declare(*policies("a"))
    on_sandbox("apply", "-y")
    assert on_sandbox("drift", "--unmanaged").out.endswith("\nEvery object is managed.\n")
    made = sandbox.post("/ip_policies", {"description": "Visitors\x1b[31m of today"})
    other = sandbox.post("/reserved_domains", {"domain": "visitors.example.com"})
    result = on_sandbox("drift", "--unmanaged")
    assert result.code == 0
    assert result.out.endswith(
        "\nNot managed:\n"
        f"  IPPolicy/visitors-31m-of-today  {made['id']}\n"
        f"  ReservedDomain/visitors.example.com  {other['id']}\n"
    )
    assert "\nNot managed:\n" not in on_sandbox("drift").out


def test_the_certificates_that_the_platform_issues_for_domains_belong_to_the_domains(
    on_sandbox: Project, sandbox: Sandbox
) -> None:
    """Of this stack, of another one, and of no stack: there the domain itself is what is not managed."""
    policy = {"authority": "letsencrypt"}
    on_sandbox.declare(
        resource("ReservedDomain", "app", domain="app.example.com", certificate_management_policy=policy)
    )
    assert on_sandbox("apply", "-y").code == 0
    theirs = owner_record.Owner("staging", Address("ReservedDomain", "shop"), "intent-of-others")
    for domain, metadata in (("shop.example.com", owner_record.write("", theirs)), ("hand.example.com", "")):
        sandbox.post(
            "/reserved_domains", {"domain": domain, "metadata": metadata, "certificate_management_policy": policy}
        )
    for _ in range(3):  # the emulator issues a certificate after several reads
        on_sandbox("drift")
    issued = {
        domain["domain"]: domain["certificate"]["id"] for domain in sandbox.get("/reserved_domains")["reserved_domains"]
    }
    assert len(sandbox.get("/tls_certificates")["tls_certificates"]) == 3
    result = on_sandbox("drift", "--unmanaged")
    assert (result.code, result.out.partition("Not managed: ")[2].partition(" (")[0]) == (0, "1 ReservedDomain")
    assert "cert_" not in result.out
    rows = {row[0]: row[1:] for row in (line.split() for line in on_sandbox("list").out.splitlines())}
    assert rows[issued["app.example.com"]][-2:] == ["prod", "ReservedDomain/app"]
    assert rows[issued["shop.example.com"]][-2:] == ["staging", "ReservedDomain/shop"]
    assert "ReservedDomain/" not in " ".join(rows[issued["hand.example.com"]])


def test_an_undeclared_uploaded_certificate_is_not_managed(on_sandbox: Project, sandbox: Sandbox) -> None:
    """Also while a domain of this stack serves it."""
    pair = {"certificate_pem": pems.certificate("leaf"), "private_key_pem": pems.private_key("leaf")}
    made = sandbox.post("/tls_certificates", pair)
    on_sandbox.declare(resource("ReservedDomain", "app", domain="app.example.com", certificate_id=made["id"]))
    assert on_sandbox("apply", "-y").code == 0
    assert "Not managed: 1 TLSCertificate (" in on_sandbox("plan").out
    assert made["id"] in on_sandbox("drift", "--unmanaged").out
    (row,) = (line for line in on_sandbox("list").out.splitlines() if made["id"] in line)
    assert "prod" not in row


def test_the_bot_users_of_another_environment_are_its_own(on_sandbox: Project) -> None:
    """They have no metadata for an owner record: the store of the folder tells whose they are."""
    for name in ("dev", "live"):
        on_sandbox.write(f"environments/{name}.yaml", f"stack: {name}\n")
        on_sandbox.declare(resource("BotUser", "robot", name=f"{name}-robot"))
        assert on_sandbox("apply", "--env", name, "-y").code == 0
    assert "Not managed" not in on_sandbox("plan", "--env", "live").out
    result = on_sandbox("drift", "--env", "live", "--unmanaged").out
    assert result.endswith("\nEvery object is managed.\nManaged by other stacks: dev (1 object).\n")
