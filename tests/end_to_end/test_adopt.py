"""`adopt`: exactly the named objects are taken over, and nothing else happens."""

from __future__ import annotations

import pytest

from reconciler.model import owner_record as owners
from tests.harness.platform import Sandbox
from tests.harness.project import Project, resource
from tests.sandbox.account import Account

SHOP = resource("ReservedDomain", "shop", domain="shop.example.com")
OTHER = resource("ReservedDomain", "other", domain="other.example.com")
OFFICE = resource("IPPolicy", "office", description="Office")


@pytest.fixture
def domains(on_sandbox: Project, sandbox: Sandbox) -> Project:
    """Two domains that somebody reserved by hand, and both declared."""
    for item in (SHOP, OTHER):
        sandbox.post("/reserved_domains", item["spec"])
    on_sandbox.declare(SHOP, OTHER, OFFICE)
    sandbox.forget_log()
    return on_sandbox


def owners_of(sandbox: Sandbox) -> dict[str, str]:
    listed = sandbox.get("/reserved_domains")["reserved_domains"]
    found = {item["domain"]: owners.read(item["metadata"])[1] for item in listed}
    return {domain: str(owner.address) for domain, owner in found.items() if owner is not None}


def test_the_named_object_is_taken_over_and_no_other(domains: Project, sandbox: Sandbox) -> None:
    result = domains("adopt", "ReservedDomain/shop", "-y")
    assert (result.code, result.out.splitlines()[-1]) == (0, "Adopted: 1 adopted.")
    assert owners_of(sandbox) == {"shop.example.com": "ReservedDomain/shop"}
    assert len(sandbox.calls()) == 1


def test_a_second_time_changes_nothing(domains: Project, sandbox: Sandbox) -> None:
    domains("adopt", "ReservedDomain/shop", "-y")
    sandbox.forget_log()
    assert (domains("adopt", "ReservedDomain/shop", "-y").code, sandbox.calls()) == (0, [])


def test_adoption_of_an_object_of_another_stack_is_refused_with_its_owner(domains: Project, sandbox: Sandbox) -> None:
    domains("adopt", "ReservedDomain/shop", "-y")
    domains.write("reconciler.yaml", "version: 1\nstack: thieves\nstore: thieves.db\n")
    result = domains("adopt", "ReservedDomain/shop", "ReservedDomain/other", "-y")
    assert result.code == 1
    assert "is managed by stack 'prod' as ReservedDomain/shop" in " ".join(result.out.split())
    assert owners_of(sandbox) == {"shop.example.com": "ReservedDomain/shop"}


def test_an_object_that_does_not_exist_is_not_created_by_adopt(domains: Project, sandbox: Sandbox) -> None:
    result = domains("adopt", "IPPolicy/office", "-y")
    assert (result.code, sandbox.calls()) == (1, [])
    assert "IPPolicy/office: does not exist on the platform, so there is nothing to adopt" in " ".join(
        result.out.split()
    )


def test_the_option_id_selects_the_object_to_adopt(domains: Project, sandbox: Sandbox) -> None:
    Account(sandbox).make("/ip_policies", description="another")
    office = Account(sandbox).id("/ip_policies", description="Office")
    assert domains("adopt", "IPPolicy/office", "--id", office, "-y").code == 0
    owner = owners.read(sandbox.get(f"/ip_policies/{office}")["metadata"])[1]
    assert owner is not None
    assert str(owner.address) == "IPPolicy/office"


def test_the_remedy_for_an_id_of_the_command_line_does_not_name_the_manifest(
    domains: Project, sandbox: Sandbox
) -> None:
    office, another = (Account(sandbox).id("/ip_policies", description=item) for item in ("Office", "another"))
    words = ("adopt", "IPPolicy/office", "-y", "--id")
    result = " ".join(domains(*words, "ipp_0").out.split())
    assert "; correct the id, or omit --id" in result
    assert domains(*words, office).code == 0
    result = " ".join(domains(*words, another).out.split())
    assert f"; set `ensure: absent` or `ensure: forgotten`, apply, then set `id: {another}`" in result


def test_adoption_that_would_update_fields_is_refused_and_shows_them(domains: Project, sandbox: Sandbox) -> None:
    domains.declare({**SHOP, "spec": {**SHOP["spec"], "description": "ours"}})
    result = domains("adopt", "ReservedDomain/shop", "-y")
    assert (result.code, '"ours"' in result.out, sandbox.calls()) == (1, True, [])
    assert (
        "ReservedDomain/shop: would be adopted and changed: description; "
        "declare the live values, or adopt and update with `apply --adopt`"
    ) in " ".join(result.out.split())


def test_a_bot_user_is_remembered_by_the_store(on_sandbox: Project, sandbox: Sandbox) -> None:
    sandbox.post("/bot_users", {"name": "berlin"})
    on_sandbox.declare(resource("BotUser", "berlin", name="berlin"))
    result = on_sandbox("adopt", "BotUser/berlin", "-y")
    assert (result.code, result.out.splitlines()[-1]) == (0, "Recorded as managed in the store: BotUser/berlin.")
    assert on_sandbox("plan", "--detailed-exitcode").code == 0


def test_a_resource_with_ensure_absent_is_not_adopted(domains: Project, sandbox: Sandbox) -> None:
    domains.declare({**SHOP, "ensure": "absent"})
    result = domains("adopt", "ReservedDomain/shop", "-y")
    assert (result.code, sandbox.calls()) == (1, [])
    assert result.err == (
        "manifests/all.yaml:1:1: ReservedDomain/shop: is declared absent; remove `ensure:` to adopt it\n1 error\n"
    )


def test_an_undeclared_object_must_be_imported_before_its_adoption(domains: Project) -> None:
    result = domains("adopt", "ReservedDomain/blog", "-y")
    assert (result.code, result.err) == (
        1,
        "ReservedDomain/blog: is not declared; `reconciler import --target ReservedDomain/blog` writes "
        "a manifest for it if it exists\n1 error\n",
    )


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("Domain",), "is not an address"),
        (("Domain/x", "-y"), "unknown kind 'Domain'"),
        (("ReservedDomain/shop",), "stdin is not a terminal; pass --auto-approve"),
        (("ReservedDomain/shop", "--id", "ipp_1", "-y"), "its ids begin with 'rd_'"),
        (("IPPolicy/office", "ReservedDomain/shop", "--id", "ipp_1", "-y"), "adopt the objects one by one"),
    ],
)
def test_invalid_arguments_are_a_usage_error(domains: Project, words: tuple[str, ...], message: str) -> None:
    answer = domains("adopt", *words)
    assert (answer.code, message in answer.err) == (64, True), answer
