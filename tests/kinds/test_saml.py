"""SAML metadata that the platform refuses is refused by `validate` and by the sandbox, with a remedy."""

from __future__ import annotations

import time

import pytest

from reconciler.kinds.rules import saml
from tests.harness.platform import Sandbox
from tests.kinds import pems
from tests.sandbox.account import Account

XMLNS = "urn:oasis:names:tc:SAML:2.0:metadata"
ROLE = "<IDPSSODescriptor/>"


def entity(roles: str = ROLE, more: str = f'xmlns="{XMLNS}" entityID="https://idp.test"') -> str:
    return f"<EntityDescriptor {more}>{roles}</EntityDescriptor>"


BOMB = "".join(
    f'<!ENTITY {after} "{f"&{before};" * 10}">' for before, after in zip("abcdefgh", "bcdefghi", strict=True)
)
REFUSED_METADATA = {
    "": "contains no XML",
    "<EntityDescriptor": "is not well-formed XML",
    "<html></html>": "its root element is no EntityDescriptor",
    f'<EntitiesDescriptor xmlns="{XMLNS}">{entity()}{entity()}</EntitiesDescriptor>': (
        "is the metadata of a federation, an EntitiesDescriptor with 2 entities; supply the one EntityDescriptor of "
        """your identity provider: xmllint --xpath '//*[local-name()="EntityDescriptor"][@entityID="ID"]' FILE"""
    ),
    entity(more='entityID="https://idp.test"'): f'its EntityDescriptor needs xmlns="{XMLNS}"',
    entity(more=f'xmlns="{XMLNS}"'): "has no entityID",
    entity(""): "has no IDPSSODescriptor; supply the metadata of the identity provider",
    entity("<SPSSODescriptor/>"): "has no IDPSSODescriptor: it describes a service provider",
    entity(ROLE + entity()): "has an EntityDescriptor within another",
    entity() + entity(): "is not well-formed XML",
    f"<!DOCTYPE x>{entity()}": "declares a document type",
    f'<!DOCTYPE x [<!ENTITY a "lol">{BOMB}]>{entity("&i;")}': "declares a document type",
    f'<!DOCTYPE x SYSTEM "file:///etc/passwd">{entity()}': "declares a document type",
    f'<?xml version="1.0" encoding="UTF-16"?>{entity()}': "is not well-formed XML",
    f'<?xml version="1.0" encoding="nothing"?>{entity()}': "names an encoding in which it is not written",
    f'<?xml version="1.0" encoding="base64"?>{entity()}': "names an encoding in which it is not written",
}


@pytest.mark.parametrize(("text", "reason"), REFUSED_METADATA.items(), ids=range(len(REFUSED_METADATA)))
def test_metadata_that_describes_no_identity_provider_is_refused(sandbox: Sandbox, text: str, reason: str) -> None:
    assert reason in (saml.metadata(text) or "")
    account = Account(sandbox)
    route = account.place("/edges/https/{edge_id}/routes/{id}")
    body = {**account.module("saml"), "idp_metadata": text}
    assert sandbox.request("PUT", f"{route}/saml", body).status_code == 400


@pytest.mark.parametrize("text", [pems.saml(), f"<?xml version='1.0'?>\n{entity()}", f"<!-- x -->{entity()}\n"])
def test_metadata_of_one_identity_provider_is_accepted(sandbox: Sandbox, text: str) -> None:
    assert saml.metadata(text) is None
    account = Account(sandbox)
    route = account.place("/edges/https/{edge_id}/routes/{id}")
    sandbox.request("PUT", f"{route}/saml", {**account.module("saml"), "idp_metadata": text}).raise_for_status()


def test_large_metadata_is_refused_quickly() -> None:
    started = time.process_time()
    assert "more than" in (saml.metadata(f"<a>{entity() * 100_000}</a>") or "")
    assert "IDPSSODescriptor" in (saml.metadata(entity("<b>" * 50_000 + "</b>" * 50_000)) or "")
    assert time.process_time() - started < 5
