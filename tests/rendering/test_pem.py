"""PEM in plans: every output shows certificates and public keys decoded, and private keys never."""

from __future__ import annotations

import base64
import hashlib
import html
import json
import re
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from ipaddress import IPv4Address

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa, x25519
from cryptography.x509.oid import NameOID
from hypothesis import given, settings
from hypothesis import strategies as st

from reconciler.model.address import Address
from reconciler.model.change import Action, Change, ChangedBy, FieldChange, Reason
from reconciler.model.plan import Plan
from reconciler.model.value import Value
from reconciler.rendering import terminal_text
from reconciler.rendering.html.plan_page import render_page
from reconciler.rendering.plan import pem
from reconciler.rendering.plan.ci_annotations import render_github
from reconciler.rendering.plan.findings import list_findings
from reconciler.rendering.plan.markdown import render_markdown
from reconciler.rendering.plan.outline import build_outline, format_value
from reconciler.rendering.plan.phrases import Flavour
from reconciler.rendering.plan.sarif import render_sarif
from reconciler.rendering.plan.text import render_text
from reconciler.rendering.wire.plan_json import write_plan
from tests.harness.tiers import examples
from tests.kinds import pems
from tests.rendering.test_text import compare

KEY = ec.derive_private_key(7, ec.SECP256R1())
HOSTILE = ("</details><script>alert(1)</script>`@all", "\x1b[31m\n::error::x\u202e\r (a), expires 2099-01-01")


def issue(common_name: str, names: Sequence[str] = (), until: str = "2027-01-02") -> str:
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common_name)])
    builder = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(KEY.public_key())
        .serial_number(1)
        .not_valid_before(datetime(2020, 1, 1, tzinfo=UTC))
        .not_valid_after(datetime.fromisoformat(until).replace(tzinfo=UTC))
    )
    if names:
        builder = builder.add_extension(x509.SubjectAlternativeName(list(map(x509.DNSName, names))), critical=False)
    return builder.sign(KEY, hashes.SHA256()).public_bytes(serialization.Encoding.PEM).decode("ascii")


def der_of(certificate: str) -> bytes:
    return base64.b64decode("".join(certificate.splitlines()[1:-1]))


def encode(der: bytes) -> str:
    return f"-----BEGIN CERTIFICATE-----\n{base64.b64encode(der).decode()}\n-----END CERTIFICATE-----\n"


def digest(certificate: str) -> str:
    return f"SHA-256 {hashlib.sha256(der_of(certificate)).hexdigest()[:16]}…"


OLD = issue("shop.example.com", ["shop.example.com"], "2026-01-02")
NEW = issue("shop.example.com", ["shop.example.com", "www.example.com"])
OLD_LINE = f"CN=shop.example.com (shop.example.com), expires 2026-01-02, {digest(OLD)}"
NEW_LINE = f"CN=shop.example.com (shop.example.com, www.example.com), expires 2027-01-02, {digest(NEW)}"


def plan_of(old: Value, new: Value, path: str = "certificate_pem") -> Plan:
    field = FieldChange(path, old, new, ChangedBy.GIT, forces_replacement=True)
    address = Address("TLSCertificate", "shop")
    return Plan("prod", changes=(Change(address, Action.REPLACE, Reason.IMMUTABLE, id="cert_1", fields=(field,)),))


def show(old: Value, new: Value) -> dict[str, str]:
    """The change in every output that shows values, with entities of HTML resolved."""
    plan = plan_of(old, new)
    findings = list_findings(plan)
    return {
        "text": render_text(plan, width=200),
        "drift": render_text(plan, width=200, flavour=Flavour.DRIFT),
        "markdown": render_markdown(plan),
        "page": html.unescape(render_page(plan)),
        "sarif": render_sarif(findings, version="1", fallback="a.yaml"),
        "github": render_github(findings),
    }


def decode(text: str) -> tuple[str, ...]:
    lines = pem.describe(text)
    assert lines is not None
    return lines


# --- every output -----------------------------------------------------------------------------------------------------


def test_a_changed_certificate_is_shown_by_subject_names_expiry_and_fingerprint_in_every_output() -> None:
    for name, text in show(OLD, NEW).items():
        assert "BEGIN CERTIFICATE" not in text, name
        assert digest(OLD)[:-1] in text, name
        assert digest(NEW)[:-1] in text, name
    outputs = show(OLD, NEW)
    assert f"- {OLD_LINE}\n          + {NEW_LINE}\n" in outputs["text"]
    assert f"- certificate_pem: {OLD_LINE}\n+ certificate_pem: {NEW_LINE}" in outputs["markdown"]
    assert OLD_LINE in outputs["page"]
    assert NEW_LINE in outputs["page"]


def test_a_certificate_is_wrapped_and_not_truncated_on_a_narrow_terminal() -> None:
    lines = render_text(plan_of(OLD, NEW), width=60).splitlines()
    start = next(number for number, line in enumerate(lines) if line.lstrip().startswith("- CN="))
    words = " ".join(line.strip() for line in lines[start : lines.index("", start)])
    assert words == f"- {OLD_LINE} + {NEW_LINE}"
    assert max(map(terminal_text.width, lines)) <= 60


def test_each_certificate_of_a_chain_has_a_line_and_the_diff_shows_which_one_changed() -> None:
    issuer = issue("ca.example.com")
    (row,) = build_outline(plan_of(OLD + issuer, NEW + issuer)).changes[0].fields
    assert [(line.sign, line.text) for line in row.diff] == [
        ("-", OLD_LINE),
        ("+", NEW_LINE),
        (" ", f"CN=ca.example.com, expires 2027-01-02, {digest(issuer)}"),
    ]


def test_the_plan_in_json_has_the_certificate_itself() -> None:
    assert json.dumps(NEW)[1:-1] in write_plan(plan_of(OLD, NEW))


def test_certificates_within_lists_and_objects_are_shown_decoded() -> None:
    value: Value = {"trust": [OLD], "name": "x"}
    assert format_value(value) == f'{{name: "x", trust: [{OLD_LINE}]}}'
    (row,) = build_outline(plan_of(None, value)).changes[0].fields
    assert row.new is not None
    assert row.new.lines == ('name: "x"', "trust:", f"  {OLD_LINE}")


def test_a_new_certificate_is_shown_where_an_object_is_created() -> None:
    assert f"+ certificate_pem: {NEW_LINE}" in show(None, NEW)["text"]


# --- other text -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", ["-----BEGIN CERTIFICATE-----\nx", "no PEM at all\nbut lines", "-----BEGIN X-----\n"])
def test_text_that_is_no_certificate_is_shown_unchanged(text: str) -> None:
    (row,) = build_outline(plan_of(None, text)).changes[0].fields
    assert row.new is not None
    assert (row.new.lines, row.new.is_decoded) == (tuple(text.removesuffix("\n").split("\n")), False)


def test_texts_with_the_same_certificate_show_how_they_differ() -> None:
    (row,) = build_outline(plan_of(OLD, f"# of the shop\n\n{OLD}")).changes[0].fields
    assert [line.text for line in row.diff if line.sign == "+"] == ['"# of the shop"']
    (row,) = build_outline(plan_of(OLD, f"\n{OLD}")).changes[0].fields
    assert [(line.sign, line.text) for line in row.diff[:2]] == [("+", ""), (" ", "-----BEGIN CERTIFICATE-----")]


@pytest.mark.parametrize("label", ["PRIVATE KEY", "RSA PRIVATE KEY", "ENCRYPTED PRIVATE KEY"])
@pytest.mark.parametrize("end", ["", "-----END {}-----\n", "-----END CERTIFICATE-----\n"])
def test_a_private_key_is_never_shown(label: str, end: str) -> None:
    """Neither a damaged one, nor one in texts that are shown unchanged since they contain the same certificates."""
    one, two = (f"-----BEGIN {label}-----\nSECRET{number}\n{end.format(label)}" for number in "12")
    for old, new in ((one, two), (OLD + one, OLD + two), (OLD + one, NEW + two), (None, one), (one + OLD, two + OLD)):
        for name, text in show(old, new).items():
            assert "SECRET" not in text, (name, old, new)
        assert pem.PRIVATE_KEY in show(old, new)["text"]
    assert "SECRET" not in format_value({"a": one})


def test_public_keys_are_shown_by_type_and_fingerprint() -> None:
    public = KEY.public_key()
    form = serialization.PublicFormat.SubjectPublicKeyInfo
    der = public.public_bytes(serialization.Encoding.DER, form)
    text = public.public_bytes(serialization.Encoding.PEM, form).decode("ascii")
    assert decode(text) == (f"public key EC secp256r1, SHA-256 {hashlib.sha256(der).hexdigest()[:16]}…",)
    line = pems.ssh_key("me@laptop")
    body = base64.b64decode(line.split()[1])
    fingerprint = base64.b64encode(hashlib.sha256(body).digest()).decode().rstrip("=")
    assert format_value(line) == f"ssh-ed25519 SHA256:{fingerprint} me@laptop"
    assert format_value("ssh-ed25519 AAAA") == '"ssh-ed25519 AAAA"'  # not a key


# --- hostile text -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("subject", HOSTILE)
def test_markup_and_control_characters_of_a_subject_are_escaped(subject: str) -> None:
    outputs = show(OLD, issue(subject, ["shop.example.com"]))
    for name, text in outputs.items():
        assert "\x1b" not in text, name
        assert "\u202e" not in text, name
        assert "\n::error::x" not in text, name
    assert "<script>alert" not in render_page(plan_of(OLD, issue(subject)))
    certificate = issue(subject)
    (line,) = decode(certificate)
    assert line.startswith('"CN=')
    assert line.endswith(f'", expires 2027-01-02, {digest(certificate)}')


def test_names_and_lines_between_certificates_are_quoted_in_the_description() -> None:
    lines = decode(f"{NEW_LINE}\n" + issue("a), expires 2099-01-01, SHA-256 00", ["b (c)"]))
    assert lines[0] == f'"{NEW_LINE}"'
    assert lines[1].startswith('"CN=a)\\\\, expires 2099-01-01\\\\, SHA-256 00" ("b (c)"), expires 2027-01-02, ')


def test_thousands_of_names_are_counted() -> None:
    many = issue("shop.example.com", [f"host-{number}.example.com" for number in range(3000)])
    (line,) = decode(many)
    listed = ", ".join(f"host-{number}.example.com" for number in range(5))
    assert line == f"CN=shop.example.com ({listed} and 2,995 more), expires 2027-01-02, {digest(many)}"
    (long,) = decode(issue("x" * 64, ["y" * 10_000] * 9))
    assert len(long) < 600


def test_ten_certificates_are_decoded_and_the_others_shown_by_a_common_digest() -> None:
    lines, other = decode(OLD * 13), decode(OLD * 12 + NEW)
    assert lines[:10] == other[:10] == (OLD_LINE,) * 10
    assert lines[10].startswith("… and 3 more, together SHA-256 ")
    assert len(lines) == len(other) == 11
    assert lines[10] != other[10]


def test_a_malformed_certificate_is_shown_as_text_without_warnings(recwarn: pytest.WarningsRecorder) -> None:
    der = der_of(OLD)
    serial = bytes.fromhex("a003020102020101")
    assert serial in der
    negative = encode(der.replace(serial, serial[:-1] + b"\xff", 1))
    assert decode(negative) == (OLD_LINE.replace(digest(OLD), digest(negative)),)
    for damaged in (encode(der.replace(b"260102", b"269902")), encode(der[:-9]), encode(b""), encode(b"0")):
        assert pem.describe(damaged) is None
        assert show(OLD, damaged)["text"].count("BEGIN CERTIFICATE") == 1
    assert not recwarn.list


def test_a_text_of_a_million_characters_is_decoded_quickly() -> None:
    begins = "-----BEGIN CERTIFICATE-----\n" * 36_000
    started = time.process_time()
    assert pem.describe(begins) is None
    assert pem.describe_ssh_key("ssh-" + "a" * 1_000_000) is None
    assert len(decode(OLD * 1500)) == 11
    assert time.process_time() - started < 3  # 0.3 s on one core of 2026


BOUNDARIES = (f"-----{end} {label}-----" for end in ("BEGIN", "END") for label in ("CERTIFICATE", "PRIVATE KEY"))
PIECES = st.sampled_from([*BOUNDARIES, "\n", " ", "AAAA", "é", "\ud800", "\x1b", "MIIB", OLD, "ssh-ed25519 AAAA"])


@settings(max_examples=examples(60))
@given(st.lists(PIECES, max_size=12).map("".join))
def test_any_text_is_shown_on_sanitized_lines(text: str) -> None:
    (row,) = build_outline(plan_of(OLD, text)).changes[0].fields
    assert row.new is not None
    for line in (row.new.line, *row.new.lines):
        assert line == terminal_text.sanitize(line)


def test_text_after_the_last_certificate_is_shown() -> None:
    one = issue("one")
    described = pem.describe(f"before\n{one}\nafter\n")
    assert described is not None
    assert (described[0], described[2:]) == ('"before"', ('"after"',))
    assert described[1].startswith("CN=one, expires 2027-01-02")


def test_a_block_ends_at_its_own_label() -> None:
    """A private key is not shown because another block ends within it."""
    for other in ("CERTIFICATE", "ZZZ"):
        key = f"-----BEGIN PRIVATE KEY-----\nabc\n-----END {other}-----\ndef\n-----END PRIVATE KEY-----\nafter"
        assert pem.conceal(key) == f"{pem.PRIVATE_KEY}\nafter"
        assert pem.describe(key) == (pem.PRIVATE_KEY, '"after"')
    open_key = "-----BEGIN PRIVATE KEY-----\nabc\n-----BEGIN CERTIFICATE-----\nx"
    assert pem.conceal(open_key) == f"{pem.PRIVATE_KEY}\n-----BEGIN CERTIFICATE-----\nx"


def certify(subject: x509.Name, names: Sequence[x509.GeneralName] = ()) -> str:
    builder = x509.CertificateBuilder().subject_name(subject).issuer_name(subject).public_key(KEY.public_key())
    builder = builder.serial_number(1).not_valid_before(datetime(2020, 1, 1, tzinfo=UTC))
    builder = builder.not_valid_after(datetime(2027, 1, 2, tzinfo=UTC))
    if names:
        builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
    return builder.sign(KEY, hashes.SHA256()).public_bytes(serialization.Encoding.PEM).decode("ascii")


def export(key: rsa.RSAPublicKey | ed25519.Ed25519PublicKey | x25519.X25519PublicKey) -> str:
    form = serialization.PublicFormat.SubjectPublicKeyInfo
    return key.public_bytes(serialization.Encoding.PEM, form).decode("ascii")


def test_every_form_of_pem_is_described_as_reviewed() -> None:
    directory = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "dir")])
    kinds: list[x509.GeneralName] = [
        x509.DirectoryName(directory),
        x509.OtherName(x509.ObjectIdentifier("1.2.3.4"), b"\x05\x00"),
        x509.RegisteredID(x509.ObjectIdentifier("1.2.3.5")),
        x509.IPAddress(IPv4Address("192.0.2.1")),
        x509.RFC822Name("a@example.com"),
        x509.UniformResourceIdentifier("https://a"),
    ]
    common = [x509.Name([x509.NameAttribute(NameOID.ORGANIZATIONAL_UNIT_NAME, "o" * n)]) for n in (60, 61, 62)]
    rsa_key = rsa.RSAPublicNumbers(65537, 2**1023 + 1).public_key()
    ed_key = ed25519.Ed25519PrivateKey.from_private_bytes(b"k" * 32).public_key()
    x_key = x25519.X25519PrivateKey.from_private_bytes(b"k" * 32).public_key()
    one = certify(directory)
    texts = {
        "no subject": certify(x509.Name([])),
        **{f"subject of {len(name.rfc4514_string())}": certify(name) for name in common},
        "a name of each kind": certify(directory, kinds[:5]),
        "another name of each kind": certify(directory, kinds[::-1][:5]),
        **{f"{n} names": certify(directory, [x509.DNSName(f"n{p}") for p in range(n)]) for n in (1, 5, 6, 7)},
        "long names": certify(directory, [x509.DNSName("n" * n) for n in (64, 65)]),
        "keys": export(rsa_key) + export(ed_key) + export(x_key),
        "X509 label": one.replace(" CERTIFICATE", " X509 CERTIFICATE"),
        "unknown label": one.replace(" CERTIFICATE", " PKCS7"),
        **{f"line of {n}": f"{'t' * n}\n{one}" for n in (198, 199, 200, 201)},
        "spaces": one.replace("\n", "  \n  "),
        "quotes": f'a "b" \\ \x1b\n\n{one}',
        "private": one + "-----BEGIN EC PRIVATE KEY-----\nx\n-----END EC PRIVATE KEY-----\n",
        "open private": one + "-----BEGIN EC PRIVATE KEY-----\nx\ny",
        "open": "-----BEGIN CERTIFICATE-----\nx\n" + one,
        "end alone": "-----END CERTIFICATE-----\n" + one,
        "not base64": one.replace("M", "!"),
        **{f"{n} certificates": f"{one * n}last\n" for n in (9, 10, 11, 12)},
        "ten and text": f"{one * 9}first\n{one}-----BEGIN X-----\na\n-----END X-----\nlast",
        "twelve that are no certificates": "-----BEGIN X-----\na\n-----END X-----\n" * 12,
    }
    lines = []
    for name, text in texts.items():
        lines += [f"{name}:", *(f"  {line}" for line in pem.describe(text) or ("nothing",))]
        concealed = pem.conceal(text)
        lines += [f"  concealed: {concealed.splitlines()[-2:]}"] if concealed != text else []
    for line in (
        "ssh-ed25519",
        "ssh-rsa AAAA",
        pems.ssh_key("me"),
        f"{pems.ssh_key('a b')}\n",
        pems.ssh_key("").strip(),
    ):
        lines += [f"{line[:12]}: {pem.describe_ssh_key(line)}"]
    masked = re.sub(
        r"SHA-?256[ :]([0-9A-Za-z+/]+)…?", lambda found: f"SHA-256 of {len(found[1])}", "\n".join((*lines, ""))
    )
    compare("pem.txt", re.sub(r"([a-z])\1{9,}", lambda run: f"{run[1]}×{len(run[0])}", masked))
