"""PEM text and SSH public keys as a reviewer reads them: one line for each certificate or key, with its fingerprint.

Pure functions of the text. `cryptography` is loaded only for text that has a certificate or a public key.
Returned lines are sanitized. What cannot be decoded stays as it is written, except for private keys, never shown.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import re
import warnings
from collections.abc import Callable, Iterator, Sequence
from itertools import count
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from reconciler.rendering.terminal_text import cut, sanitize

if TYPE_CHECKING:
    from cryptography import x509

PRIVATE_KEY: Final = "private key: (sensitive)"
_MOST: Final = 10  # certificates and keys that are decoded; a chain seldom has more than four
_MOST_NAMES: Final = 5
_LONGEST_NAME: Final = 64  # cells; the longest common name
_LONGEST_LINE: Final = 200  # cells, of a line that is neither a certificate nor a key
_DIGITS: Final = 16  # of the fingerprint: 64 bits: no second certificate with the same digits can be found
_BEGIN: Final = "-----BEGIN "
_BOUNDARY: Final = re.compile(r"-----(BEGIN|END) ([A-Z0-9 ]{1,64})-----")
_PLAIN: Final = re.compile(r"[A-Za-z0-9*][A-Za-z0-9.,:/=@_*'+-]*…?")  # what needs no quotes among the other parts
_SSH_LINE: Final = re.compile(r"((?:ssh|ecdsa|sk)-[A-Za-z0-9@.-]{1,60}) ([A-Za-z0-9+/]+={0,2})(?: +([^\n]*))?\n?")


class _Block(Struct, frozen=True):
    """The lines from BEGIN to END; `label` is empty for a line between blocks, or without END."""

    label: str
    lines: Sequence[str]


def has_pem(text: str) -> bool:
    """Whether the text may contain a block that `describe` or `conceal` changes."""
    return _BEGIN in text


def describe(text: str) -> tuple[str, ...] | None:
    """A line for each certificate and key, and the other lines of the text; None if nothing could be decoded."""
    blocks = [*_split(text)]
    numbers = count()
    decoded = [_decode(block) if block.label and next(numbers) < _MOST else None for block in blocks]
    if not any(decoded):
        return None
    last = max(number for number, line in enumerate(decoded) if line)
    visible = [*zip(decoded, blocks, strict=True)][: last + 1 if next(numbers) > _MOST else None]
    # Quotes: a line between blocks must not pass for a certificate.
    lines = [line for known, block in visible for line in ((known,) if known else map(_quote_line, block.lines))]
    return (*lines, *_summarize_rest(blocks[len(visible) :]))


def conceal(text: str) -> str:
    """The text without its private keys."""
    blocks = [*_split(text)] if "PRIVATE KEY-----" in text else []
    if not any(map(_is_private, blocks)):
        return text
    return "\n".join(line for block in blocks for line in ([PRIVATE_KEY] if _is_private(block) else block.lines))


def describe_ssh_key(text: str) -> str | None:
    """The type, fingerprint and comment of a public key in a line of authorized_keys; None if it is none.

    The fingerprint is spelled as `ssh-keygen -l` prints it.
    """
    match = _SSH_LINE.fullmatch(text)
    body = _decode_base64(match[2]) if match else None
    if match is None or body is None or not body[4:].startswith(match[1].encode()):
        return None
    digest = base64.b64encode(hashlib.sha256(body).digest()).decode().rstrip("=")
    return f"{match[1]} SHA256:{digest}" + (f" {_quote(match[3])}" if match[3] else "")


# --- blocks -----------------------------------------------------------------------------------------------------------


def _split(text: str) -> Iterator[_Block]:
    """The blocks of a text in order, and the lines between them that are not empty."""
    label, lines = "", list[str]()
    for line in text.split("\n"):
        boundary = _BOUNDARY.fullmatch(line.strip())
        if boundary is not None and boundary[1] == "BEGIN":
            yield from _leave_open(label, lines)
            label, lines = boundary[2], [line]
        elif boundary is not None and boundary[2] == label:
            yield _Block(label, [*lines, line])
            label, lines = "", []
        elif label:
            lines.append(line)
        elif line.strip():
            yield _Block("", [line])
    yield from _leave_open(label, lines)


def _leave_open(label: str, lines: Sequence[str]) -> Iterator[_Block]:
    """A block without END. Of a private key it is one all the same, so that its lines are not shown."""
    if lines:
        yield _Block(label if "PRIVATE KEY" in label else "", lines)


def _is_private(block: _Block) -> bool:
    return "PRIVATE KEY" in block.label


def _summarize_rest(blocks: Sequence[_Block]) -> Iterator[str]:
    """The blocks beyond those that are decoded, in one line that differs if one of them does."""
    number = sum(bool(block.label) for block in blocks)
    if blocks:
        text = "\n".join(line.strip() for block in blocks for line in block.lines)
        yield f"… and {number:,} more, together {_fingerprint(text.encode(errors='replace'))}"


# --- certificates and public keys -------------------------------------------------------------------------------------


def _decode(block: _Block) -> str | None:
    if _is_private(block):
        return PRIVATE_KEY
    describe_der = _FORMS.get(block.label)
    der = _decode_base64("".join(line.strip() for line in block.lines[1:-1])) if describe_der else None
    if describe_der is None or der is None:
        return None
    from cryptography.exceptions import UnsupportedAlgorithm

    try:
        with warnings.catch_warnings():  # of certificates that some later version will refuse
            warnings.simplefilter("ignore")
            return sanitize(f"{describe_der(der)}, {_fingerprint(der)}")
    except (ValueError, TypeError, OverflowError, UnsupportedAlgorithm):
        return None


def _describe_certificate(der: bytes) -> str:
    from cryptography import x509

    found = x509.load_der_x509_certificate(der)
    names = _read_names(found)
    more = f" and {len(names) - _MOST_NAMES:,} more" if len(names) > _MOST_NAMES else ""
    listed = f" ({', '.join(map(_quote, names[:_MOST_NAMES]))}{more})" if names else ""
    return f"{_quote(_read_subject(found))}{listed}, expires {found.not_valid_after_utc.date().isoformat()}"


def _read_subject(certificate: x509.Certificate) -> str:
    try:
        return certificate.subject.rfc4514_string() or "no subject"
    except ValueError:
        return "unreadable subject"


def _read_names(certificate: x509.Certificate) -> list[str]:
    from cryptography import x509

    try:
        found = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return []
    except (ValueError, x509.DuplicateExtension):
        return ["unreadable names"]
    return [_name(name) for name in found]


def _name(name: x509.GeneralName) -> str:
    from cryptography import x509

    if isinstance(name, x509.DirectoryName):
        return name.value.rfc4514_string()
    if isinstance(name, x509.OtherName):
        return f"name of type {name.type_id.dotted_string}"
    return str(name.value.dotted_string if isinstance(name, x509.RegisteredID) else name.value)


def _describe_public_key(der: bytes) -> str:
    from cryptography.hazmat.primitives.asymmetric import ec, rsa
    from cryptography.hazmat.primitives.serialization import load_der_public_key

    key = load_der_public_key(der)
    if isinstance(key, rsa.RSAPublicKey):
        return f"public key RSA {key.key_size}"
    if isinstance(key, ec.EllipticCurvePublicKey):
        return f"public key EC {key.curve.name}"
    return f"public key {type(key).__name__.lstrip('_').removesuffix('PublicKey')}"


_FORMS: Final[dict[str, Callable[[bytes], str]]] = {
    "CERTIFICATE": _describe_certificate,
    "X509 CERTIFICATE": _describe_certificate,
    "PUBLIC KEY": _describe_public_key,
    "RSA PUBLIC KEY": _describe_public_key,
}


# --- words ------------------------------------------------------------------------------------------------------------


def _decode_base64(text: str) -> bytes | None:
    try:
        return base64.b64decode(text, validate=True)
    except (ValueError, binascii.Error):
        return None


def _fingerprint(content: bytes) -> str:
    return f"SHA-256 {hashlib.sha256(content).hexdigest()[:_DIGITS]}…"


def _quote(text: str) -> str:
    """A foreign text among other parts: cut, and in quotes if it could be taken for one of them."""
    short = cut(sanitize(text), _LONGEST_NAME)
    return short if _PLAIN.fullmatch(short) else _in_quotes(text, _LONGEST_NAME)


def _quote_line(line: str) -> str:
    return _in_quotes(line, _LONGEST_LINE)


def _in_quotes(text: str, limit: int) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{cut(sanitize(escaped), limit)}"'
