"""`drift --unmanaged`: what somebody made by hand, by the name that an import would give it."""

from __future__ import annotations

from tests.end_to_end.project import Project, policies
from tests.platform import Sandbox


def test_newcomers_are_named_on_request(on_sandbox: Project, sandbox: Sandbox) -> None:
    on_sandbox.declare(*policies("a"))
    on_sandbox("apply", "-y")
    assert on_sandbox("drift", "--unmanaged").out.endswith("\nEvery object is managed.\n")
    made = sandbox.post("/ip_policies", {"description": "Visitors\x1b[31m of today"})
    other = sandbox.post("/reserved_domains", {"domain": "visitors.example.com"})
    said = on_sandbox("drift", "--unmanaged")
    assert said.code == 0
    assert said.out.endswith(
        "\nNot managed:\n"
        f"  IPPolicy/visitors-31m-of-today  {made['id']}\n"
        f"  ReservedDomain/visitors.example.com  {other['id']}\n"
    )
    assert "\nNot managed:\n" not in on_sandbox("drift").out
