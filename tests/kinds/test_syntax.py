"""The texts that each rule of syntax accepts and refuses."""

from __future__ import annotations

import base64
from collections.abc import Callable

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import dsa, ec, rsa

from reconciler.kinds.rules import syntax
from tests.harness.platform import Sandbox
from tests.kinds import pems
from tests.sandbox.account import Account

LONG = "a" * 63

ACCEPTED = {
    syntax.host: [
        "example.com",
        "App.Example.COM",
        "app.example.com.",
        "*.example.com",
        "xn--bcher-kva.example",
        "1.tcp.example.com",
        f"{LONG}.example.com",
    ],
    syntax.plain_host: ["connect.example.com"],
    syntax.hostport: [
        "example.com:443",
        "*.example.com:443",
        "1.tcp.example.com:20000",
        "a.example.com:1",
        "a.b:65535",
    ],
    syntax.url: [
        "https://example.com",
        "HTTPS://Example.com",
        "http://example.com:8080",
        "tls://example.com",
        "tcp://1.tcp.example.com:20000",
        "https://*.example.com",
        "https://*.internal",
        "https://*.Internal:8443",
    ],
    syntax.cidr: ["10.0.0.0/8", "203.0.113.7/32", "0.0.0.0/0", "2001:db8::/32", "2001:DB8::/32", "::/0"],
    syntax.instant: [
        "2030-01-31T12:00:00Z",
        "2030-01-31t12:00:00z",
        "2030-01-31T12:00:00.123456Z",
        "2030-01-31T12:00:00+02:00",
        "2028-02-29T00:00:00Z",
    ],
    syntax.acl_rule: [
        "*",
        "bind:example.com",
        "bind:*.example.com",
        "bind:1.tcp.example.com:20000",
        "bind:team=payments",
        "bind:*=payments",
        "bind:team=*",
        "bind:*=*",
        "bind:localhost",
        "bind:localhost:8080",
        "bind:my_app.example.com",
        "bind:*.internal",
        "bind:app.example.com.",
        "bind:10.0.0.1",
    ],
    syntax.route_path: ["/", "/hooks/", "/a%20b", "/a.b-c_d~e"],
    syntax.event_type: ["ip_policy_created.v0", "vault_deleted.v12"],
    syntax.not_empty: ["a"],
}

REFUSED = {
    syntax.host: [
        "",
        "example",
        "https://example.com",
        "example.com:443",
        "example.com/path",
        "a_b.example.com",
        "a.*.example.com",
        "*example.com",
        "*.*.example.com",
        "-a.example.com",
        "a-.example.com",
        "a..example.com",
        "bücher.example",
        "10.0.0.1",
        f"{LONG}a.example.com",
        ".".join([LONG] * 4),
        "*",
        "*.",
    ],
    syntax.plain_host: ["*.example.com", "example"],
    syntax.hostport: [
        "example.com",
        "example.com:",
        "example.com:0",
        "example.com:65536",
        "example.com:https",
        "example.com:\uff14\uff14\uff13",
        ":443",
    ],
    syntax.url: [
        "example.com",
        "ftp://example.com",
        "https://example.com/",
        "https://example.com/path",
        "https://example.com?a=b",
        "https://example.com#a",
        "https://me:secret@example.com",
        "tcp://1.tcp.example.com",
        "https://",
        "https://example.com:99999",
        "https://internal",
        "https://*.example",
    ],
    syntax.cidr: ["10.0.0.0", "10.0.0.1/8", "10.0.0.0/33", "10.0.0.0/255.0.0.0", "::1/64", "office", "10.0.0.0/8/9"],
    syntax.instant: [
        "2030-01-31",
        "2030-01-31T12:00:00",
        "2030-01-31 12:00:00Z",
        "2030-02-30T12:00:00Z",
        "2030-01-31T25:00:00Z",
        "2030-01-31T12:00:00+0200",
        "tomorrow",
        "",
    ],
    syntax.acl_rule: [
        "bind:host ",
        "bind: host",
        " *",
        "",
        "**",
        "bind:",
        "bind:*",
        "bind",
        "allow:example.com",
        "Bind:example.com",
        "bind:=x",
        "bind:x=",
        "bind:te*=x",
        "bind:a=b=c",
        "bind:a.*.example.com",
        "bind:example.com:port",
        "bind:*.",
        "bind:-a.example.com",
        "bind:a b",
        "bind:https://example.com",
        "bind:b\u00fccher.example.com",
    ],
    syntax.route_path: ["", "hooks", "/a b", "/a?b", "/a#b"],
    syntax.event_type: ["ip_policy_created", "ip_policy_created.0", "ip policy.v0", ""],
    syntax.not_empty: ["", "  "],
}

Rule = Callable[[str], str | None]


@pytest.mark.parametrize(("rule", "text"), [(rule, text) for rule, texts in ACCEPTED.items() for text in texts])
def test_a_rule_accepts_well_formed_text(rule: Rule, text: str) -> None:
    assert rule(text) is None


@pytest.mark.parametrize(("rule", "text"), [(rule, text) for rule, texts in REFUSED.items() for text in texts])
def test_a_refusal_has_a_reason_and_a_remedy(rule: Rule, text: str) -> None:
    what, _, remedy = (rule(text) or "").partition("; ")
    assert what
    assert remedy


@pytest.mark.parametrize(
    ("text", "corrected"),
    [
        ("10.0.0.1/8", "10.0.0.0/8"),
        ("10.0.0.7", "10.0.0.7/32"),
        ("2001:db8::1", "2001:db8::1/128"),
        ("10.0.0.0/255.0.0.0", "10.0.0.0/8"),
    ],
)
def test_a_wrong_network_is_corrected_in_the_message(text: str, corrected: str) -> None:
    assert corrected in (syntax.cidr(text) or "")


def test_a_password_in_a_url_is_not_repeated() -> None:
    assert "secret" not in (syntax.url("https://me:secret@example.com") or "")


# --- keys and certificates --------------------------------------------------------------------------------------------


def test_a_certificate_and_its_chain_are_certificates() -> None:
    assert syntax.certificates(pems.certificate()) is None
    assert syntax.certificates(pems.certificate() + "\n" + pems.certificate(ca=True)) is None
    assert "out of order" in (syntax.certificates(pems.certificate() + pems.certificate("b", ca=True)) or "")


def test_white_space_around_a_certificate_does_not_matter() -> None:
    assert syntax.certificates(f"\n\n  {pems.certificate()}  \n\n") is None


def test_an_authority_is_one_certificate_that_may_sign() -> None:
    assert syntax.certificate_authority(pems.certificate("ca", ca=True)) is None


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (pems.certificate(), "not the certificate of an authority"),
        (pems.certificate("none", ca=None), "not the certificate of an authority"),
        (pems.certificate("ca", ca=True) * 2, "contains 2 certificates"),
        (pems.private_key(), "private key"),
        (pems.public_pem(), "public key"),
        ("ca.pem", "not PEM"),
        ("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n", "damaged"),
    ],
)
def test_a_wrong_authority_is_refused_with_its_actual_type(text: str, words: str) -> None:
    assert words in (syntax.certificate_authority(text) or "")


def test_a_private_key_with_a_passphrase_is_refused() -> None:
    assert syntax.private_key(pems.private_key()) is None
    assert "encrypted" in (syntax.private_key(pems.private_key(passphrase=b"sesame")) or "")


@pytest.mark.parametrize("text", ["", "secret", pems.certificate(), pems.public_pem()])
def test_an_invalid_private_key_is_refused_without_repeating_it(text: str) -> None:
    wrong = syntax.private_key(text)
    assert wrong is not None
    assert not text or text not in wrong


@pytest.mark.parametrize(
    "text", [pems.ssh_key(), pems.ssh_key("me@laptop"), pems.public_pem()], ids=["line", "comment", "pem"]
)
def test_a_public_key_may_be_a_line_or_a_pem(text: str) -> None:
    assert syntax.ssh_public_key(text) is None


@pytest.mark.parametrize("text", [pems.ssh_key(), pems.ssh_key("me@laptop")], ids=["line", "comment"])
def test_a_key_that_must_be_a_line_may_be_one(text: str) -> None:
    assert syntax.ssh_line(text) is None


def test_a_key_that_must_be_a_line_is_no_pem() -> None:
    assert "ssh-keygen" in (syntax.ssh_line(pems.public_pem()) or "")


@pytest.mark.parametrize("text", ["", "ssh-ed25519", "hello world"])
def test_a_line_without_a_key_is_refused(text: str) -> None:
    assert "PEM" in (syntax.ssh_public_key(text) or "")
    assert "PEM" not in (syntax.ssh_line(text) or "PEM")


def test_a_private_key_in_the_place_of_a_public_key_is_reported() -> None:
    for rule in (syntax.ssh_public_key, syntax.ssh_line):
        assert "private key" in (rule(pems.private_key()) or "")


def test_two_public_keys_are_refused() -> None:
    assert "one" in (syntax.ssh_public_key(f"{pems.ssh_key()}\n{pems.ssh_key('b')}") or "")


def test_a_certificate_matches_its_own_key_only() -> None:
    assert syntax.matches_key(pems.certificate("a"), pems.private_key("a"))
    assert not syntax.matches_key(pems.certificate("a"), pems.private_key("b"))


# --- SSH keys that the platform refuses, and the sandbox with it ------------------------------------------------------


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


@pytest.mark.parametrize(("text", "reason"), REFUSED_KEYS.items(), ids=range(len(REFUSED_KEYS)))
def test_a_key_that_the_platform_refuses_is_refused_with_a_remedy(sandbox: Sandbox, text: str, reason: str) -> None:
    for rule in (syntax.ssh_line, syntax.ssh_public_key):
        wrong = rule(text) or ""
        assert reason in wrong
        assert BODY not in wrong
    assert sandbox.request("POST", "/ssh_credentials", {"public_key": text}).status_code == 400
    authority = Account(sandbox).id("/ssh_certificate_authorities")
    body = {"ssh_certificate_authority_id": authority, "public_key": text}
    assert sandbox.request("POST", "/ssh_host_certificates", body).status_code == 400


@pytest.mark.parametrize(("key", "reason"), [(DSA, "DSA"), (CURVE, "secp256k1")], ids=["dsa", "curve"])
def test_a_pem_of_a_key_type_that_ssh_lacks_is_refused(sandbox: Sandbox, key: object, reason: str) -> None:
    assert reason in (syntax.ssh_public_key(pem(key)) or "")
    assert sandbox.request("POST", "/ssh_credentials", {"public_key": pem(key)}).status_code == 400


@pytest.mark.parametrize(
    "key",
    [
        rsa.generate_private_key(65537, 2048).public_key(),
        *(ec.generate_private_key(curve()).public_key() for curve in (ec.SECP256R1, ec.SECP384R1, ec.SECP521R1)),
    ],
    ids=["rsa", "nistp256", "nistp384", "nistp521"],
)
def test_keys_of_documented_types_are_accepted_as_line_and_as_pem(sandbox: Sandbox, key: object) -> None:
    assert syntax.ssh_line(line(key)) is None
    assert syntax.ssh_public_key(pem(key)) is None
    assert syntax.ssh_line(f"{line(key)} me@laptop in Berlin\n") is None
    sandbox.post("/ssh_credentials", {"public_key": f"{line(key)} me@laptop in Berlin\n"})


# --- hosts that a value names -----------------------------------------------------------------------------------------


def test_a_hostport_names_its_host_and_itself() -> None:
    assert [*syntax.hosts_of_hostports(["App.example.com:443"])] == ["app.example.com", "app.example.com:443"]


def test_a_url_names_its_host_and_an_explicit_port() -> None:
    assert [*syntax.hosts_of_url("https://App.example.com")] == ["app.example.com"]
    assert [*syntax.hosts_of_url("tcp://1.tcp.example.com:20000")] == ["1.tcp.example.com", "1.tcp.example.com:20000"]


def test_a_bind_rule_names_its_host_and_a_label_rule_names_none() -> None:
    assert [*syntax.hosts_of_acl(["bind:*.example.com", "bind:team=payments", "*"])] == ["*.example.com"]


@pytest.mark.parametrize("value", [None, 1, {}, [1, None], "https://[", [":443"]])
def test_a_value_without_a_host_names_none(value: object) -> None:
    for hosts in (syntax.hosts_of_hostports, syntax.hosts_of_url, syntax.hosts_of_acl):
        assert [*hosts(value)] == []
