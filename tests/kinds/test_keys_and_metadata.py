"""SAML metadata and SSH keys that the platform refuses are refused by `validate` and by the sandbox, with a remedy."""

from __future__ import annotations

import base64
import time

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import dsa, ec, rsa

from reconciler.kinds.rules import saml, syntax
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


@pytest.mark.parametrize(("text", "told"), REFUSED_METADATA.items(), ids=range(len(REFUSED_METADATA)))
def test_metadata_that_describes_no_identity_provider_is_refused(sandbox: Sandbox, text: str, told: str) -> None:
    assert told in (saml.metadata(text) or "")
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


def test_the_metadata_of_a_federation_takes_no_time() -> None:
    started = time.process_time()
    assert "more than" in (saml.metadata(f"<a>{entity() * 100_000}</a>") or "")
    assert "IDPSSODescriptor" in (saml.metadata(entity("<b>" * 50_000 + "</b>" * 50_000)) or "")
    assert time.process_time() - started < 5


# --- SSH keys ---------------------------------------------------------------------------------------------------------


def line(key: object) -> str:
    form = serialization.PublicFormat.OpenSSH
    encoded: bytes = key.public_bytes(serialization.Encoding.OpenSSH, form)  # type: ignore[attr-defined]
    return encoded.decode()


def pem(key: object) -> str:
    form = serialization.PublicFormat.SubjectPublicKeyInfo
    encoded: bytes = key.public_bytes(serialization.Encoding.PEM, form)  # type: ignore[attr-defined]
    return encoded.decode()


KEY = pems.ssh_key()
BODY = KEY.split()[1]
DSA = dsa.generate_private_key(1024).public_key()  # noqa: S505 - it is to be refused
CURVE = ec.generate_private_key(ec.SECP256K1()).public_key()
REFUSED_KEYS = {
    f'command="ls",no-pty {KEY}': "there are options before the key, which the platform does not accept; remove all",
    f"{KEY}\n{pems.ssh_key('b')}": "there is more than one line",
    f"ssh-rsa {BODY}": "the key after ssh-rsa is damaged, or of another type",
    f"ecdsa-sha2-nistp256 {BODY}": "the key after ecdsa-sha2-nistp256 is damaged, or of another type",
    KEY[:-6]: "the key after ssh-ed25519 is damaged, or of another type",
    "ssh-ed25519": "not a public key; write it like ssh-ed25519 AAAA…",
    f"{KEY} sören": "its comment contains characters outside ASCII",
    f"ssh-dss {base64.b64encode(b'x' * 40).decode()}": "this is a DSA key, which the platform does not accept",
    f"ssh-ed25519-cert-v01@openssh.com {BODY}": "this is an SSH certificate",
    pems.private_key(): "this is a private key",
    "-----BEGIN OPENSSH PRIVATE KEY-----\nc2VjcmV0\n-----END OPENSSH PRIVATE KEY-----": "this is a private key",
    "PuTTY-User-Key-File-3: ssh-ed25519\nEncryption: none": "this is a private key",
    "---- BEGIN SSH2 PUBLIC KEY ----\nAAAA\n---- END SSH2 PUBLIC KEY ----": "ssh-keygen -i -m RFC4716",
}


@pytest.mark.parametrize(("text", "told"), REFUSED_KEYS.items(), ids=range(len(REFUSED_KEYS)))
def test_a_key_that_the_platform_refuses_is_refused_with_what_to_do(sandbox: Sandbox, text: str, told: str) -> None:
    for rule in (syntax.ssh_line, syntax.ssh_public_key):
        wrong = rule(text) or ""
        assert told in wrong
        assert BODY not in wrong
    assert sandbox.request("POST", "/ssh_credentials", {"public_key": text}).status_code == 400
    authority = Account(sandbox).id("/ssh_certificate_authorities")
    body = {"ssh_certificate_authority_id": authority, "public_key": text}
    assert sandbox.request("POST", "/ssh_host_certificates", body).status_code == 400


@pytest.mark.parametrize(("key", "told"), [(DSA, "DSA"), (CURVE, "secp256k1")], ids=["dsa", "curve"])
def test_a_pem_of_a_key_that_ssh_does_not_have_is_refused(sandbox: Sandbox, key: object, told: str) -> None:
    assert told in (syntax.ssh_public_key(pem(key)) or "")
    assert sandbox.request("POST", "/ssh_credentials", {"public_key": pem(key)}).status_code == 400


@pytest.mark.parametrize(
    "key",
    [
        rsa.generate_private_key(65537, 2048).public_key(),
        *(ec.generate_private_key(curve()).public_key() for curve in (ec.SECP256R1, ec.SECP384R1, ec.SECP521R1)),
    ],
    ids=["rsa", "nistp256", "nistp384", "nistp521"],
)
def test_keys_of_the_documented_types_are_accepted_as_a_line_with_a_comment_and_as_pem(
    sandbox: Sandbox, key: object
) -> None:
    assert syntax.ssh_line(line(key)) is None
    assert syntax.ssh_public_key(pem(key)) is None
    assert syntax.ssh_line(f"{line(key)} me@laptop in Berlin\n") is None
    sandbox.post("/ssh_credentials", {"public_key": f"{line(key)} me@laptop in Berlin\n"})
