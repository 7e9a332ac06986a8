"""A changed certificate is shown decoded in each output of a plan."""

from __future__ import annotations

import json

from tests.harness.project import Project, resource
from tests.kinds import pems


def test_a_new_certificate_of_an_authority_is_shown_decoded_in_each_output(on_sandbox: Project) -> None:
    old, new = pems.certificate("old-ca", ca=True), pems.certificate("new-ca", ca=True)
    on_sandbox.declare(resource("CertificateAuthority", "partners", ca_pem=old))
    assert on_sandbox("apply", "-y").code == 0
    on_sandbox.declare(resource("CertificateAuthority", "partners", ca_pem=new))
    outputs = ("--format=text", "--format=markdown=plan.md", "--format=html=plan.html", "--format=json=plan.json")
    result = on_sandbox("plan", *outputs)
    assert result.code == 0
    for text in (result.out, (on_sandbox.root / "plan.md").read_text(), (on_sandbox.root / "plan.html").read_text()):
        assert "CN=old-ca, expires 2040-01-01, SHA-256 " in text
        assert "CN=new-ca, expires 2040-01-01, SHA-256 " in text
        assert "BEGIN CERTIFICATE" not in text
    (field,) = json.loads((on_sandbox.root / "plan.json").read_text())["changes"][0]["fields"]
    assert field["new"] == new.strip()
    on_sandbox("apply", "-y", "--allow", "delete:CertificateAuthority=1")
    assert "CN=" not in on_sandbox("plan").out
