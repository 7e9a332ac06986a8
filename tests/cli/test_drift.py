"""`drift`: what changed on the platform, and what only Git changed."""

from __future__ import annotations

import pytest

from tests.harness.platform import Sandbox
from tests.harness.project import Output, Shell


def edge_of(sandbox: Sandbox) -> str:
    return str(sandbox.get("/edges/tls")["tls_edges"][0]["id"])


def test_drift_shows_what_changed_on_the_platform_and_what_changed_in_git(shell: Shell, sandbox: Sandbox) -> None:
    shell("apply", "-y")
    sandbox.patch(f"/edges/tls/{edge_of(sandbox)}", {"description": "by hand"})
    shell.write(
        "manifests/payments.yaml",
        (shell.root / "manifests/payments.yaml")
        .read_text()
        .replace("description: Office", "description: Headquarters"),
    )
    assert shell("drift").number_ids() == Output(
        2,
        """\
Differences: - on the platform, + in the manifests

  ~ TLSEdge/payments  manifests/payments.yaml:6
      differs from the manifest (edgtls_1)
      ~ description: "by hand" on the platform, "" in Git  (changed on the platform)

Unapplied Git changes:

  ~ IPPolicy/office  manifests/payments.yaml:1
      changed in Git, not applied yet (ipp_1)
      ~ description: "Office" on the platform, "Headquarters" in Git  (changed in Git)

Drift: 1 resource changed on the platform. 1 resource has unapplied Git changes.
""",
        "",
    )
    shell("apply", "-y")
    assert shell("drift") == Output(0, "No drift. 3 resources match the manifests.\n", "")


def test_unapplied_git_changes_are_drift_only_with_pending(
    shell: Shell, sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    shell("apply", "-y")
    declared = (shell.root / "manifests/payments.yaml").read_text()
    added = "---\nkind: IPPolicy\nname: new\nspec: {}\n"
    shell.write("manifests/payments.yaml", declared.replace("description: Office", "description: New") + added)
    result = shell("drift")
    assert (result.code, result.out.splitlines()[-1]) == (0, "No drift. 2 resources have unapplied Git changes.")
    assert shell("drift", "--pending").code == 2
    # Without a store the owner record shows what changed, but not whether a missing object ever existed.
    monkeypatch.setenv("RECONCILER_STORE", "memory:")
    result = shell("drift")
    assert (result.code, result.out.splitlines()[-1]) == (
        2,
        "Drift: 1 resource with an unknown cause. 1 resource has unapplied Git changes.",
    )
    assert shell("drift", "IPPolicy/office").code == 0
    monkeypatch.delenv("RECONCILER_STORE")
    sandbox.delete(f"/edges/tls/{edge_of(sandbox)}")
    result = shell("drift", "TLSEdge/*")
    assert (result.code, "deleted on the platform" in result.out, "IPPolicy/new" in result.out) == (2, True, False)
    assert shell("drift", "TLSEdge/nothing").code == 64


def test_drift_of_selected_resources_is_not_recorded(shell: Shell, sandbox: Sandbox) -> None:
    result = shell("drift", "--record", "--target", "IPPolicy/*")
    assert result == Output(64, "", "error: --record checks the whole stack; select no resources\n")


def test_drift_with_listing_errors_is_not_recorded(shell: Shell, sandbox: Sandbox) -> None:
    shell("apply", "-y")
    sandbox.fault("GET /ip_policies", then="status", status=400, times=0)
    result = shell("drift", "--record")
    assert result.code == 1
    assert "note: drift check not recorded, because the plan has errors" in result.err
    assert "No drift check was recorded" in shell("report").out


def test_a_store_in_memory_records_nothing(shell: Shell, sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RECONCILER_STORE", "memory:")
    result = shell("drift", "--record")
    assert result == Output(64, "", "error: --record requires a persistent store; set `store` to a file, not memory:\n")
