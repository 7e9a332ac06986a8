"""Syntax rules for texts: hostnames, URLs, networks, ACL rules, timestamps, keys and certificates. Pure functions.

A rule returns None for a valid text, otherwise `problem; remedy`. Messages never contain a value that may be secret.
Whether a well-formed text refers to anything that exists is checked by the platform.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable, Iterator
from datetime import datetime
from itertools import pairwise
from typing import Any
from urllib.parse import urlsplit

from reconciler.kinds.rules import canonical
from reconciler.kinds.rules import traffic_policy as policy
from reconciler.model.value import Json

_LABEL = re.compile(r"[A-Za-z0-9_](?:[A-Za-z0-9_-]*[A-Za-z0-9_])?")
_INSTANT = re.compile(r"\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d(?:\.\d+)?(?:[Zz]|[+-]\d\d:\d\d)")
_ACL_LABEL = re.compile(r"(?:\*|[^*=\s]+)=(?:\*|[^*=\s]+)")
_TUNNEL_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,99}")
_SCHEMES = ("http", "https", "tcp", "tls")
_LARGEST_PORT = 65535
_TLS_VERSIONS = ("1.0", "1.1", "1.2", "1.3")
_NO_KEY = "not a public key; write it like ssh-ed25519 AAAA…"
_NO_DSA = "this is a DSA key, which the platform does not accept; create one with ssh-keygen -t ed25519"
_SSH_CURVES = ("secp256r1", "secp384r1", "secp521r1")
_SSH_TYPES = (
    "ssh-ed25519",
    "ssh-rsa",
    "ecdsa-sha2-nistp256",
    "ecdsa-sha2-nistp384",
    "ecdsa-sha2-nistp521",
    "sk-ssh-ed25519@openssh.com",
    "sk-ecdsa-sha2-nistp256@openssh.com",
)


# --- names and addresses ----------------------------------------------------------------------------------------------


def host(text: str) -> str | None:
    """A fully qualified hostname; its first label may be `*`."""
    if "_" in text:
        return f"{text!r} contains an underscore; use letters, digits and '-' in hostnames"
    labels = text.strip().removesuffix(".").removeprefix("*.").split(".")
    if (wrong := bindable(text)) is not None:
        return wrong
    if len(labels) < 2 or labels[-1].isdigit():
        return f"{text!r} is not a full hostname; write it like app.example.com"
    return None


def bindable(text: str) -> str | None:
    """A hostname that a credential can bind, such as localhost; its first label may be `*`, underscores are allowed."""
    name = text.strip().removesuffix(".")
    if not name.isascii():
        return f"{text!r} contains characters outside ASCII; write the name in its xn-- form"
    if len(name) > 253:
        return f"the hostname has {len(name)} characters; at most 253 are allowed"
    labels = name.removeprefix("*.").split(".")
    if "*" in name.removeprefix("*."):
        return f"{text!r} has a wildcard that is not the first label; write *.example.com"
    for label in labels:
        if len(label) > 63:
            return f"{text!r} has a label of {len(label)} characters; at most 63 are allowed"
        if not _LABEL.fullmatch(label):
            return f"{text!r} is not a hostname; write it like app.example.com, with no scheme, port or path"
        if not _is_decodable(label):
            return f"{text!r} has an xn-- label that stands for no name; copy it from a converter of hostnames"
    return None


def _is_decodable(label: str) -> bool:
    """Whether a label is not in Punycode, or can be decoded."""
    if not label.lower().startswith("xn--"):
        return True
    try:
        label[4:].encode("ascii").decode("punycode")
    except UnicodeError:
        return False
    return True


def plain_host(text: str) -> str | None:
    """A fully qualified hostname without a wildcard."""
    if text.strip().startswith("*"):
        return f"{text!r} is a wildcard; set a single domain, such as example.com"
    return host(text)


def hostport(text: str) -> str | None:
    return _with_port(text, host)


def https_hostport(text: str) -> str | None:
    """The hostport of an edge that serves domains, whose port is 443."""
    name, _, port = text.strip().rpartition(":")
    wrong = hostport(text)
    if wrong is None and port != "443":
        return f"{text!r} has a port other than 443, the only one of domains; write {name}:443"
    return wrong


def _with_port(text: str, rule: Callable[[str], str | None]) -> str | None:
    name, colon, port = text.strip().rpartition(":")
    if not colon:
        return f"{text!r} has no port; write it like app.example.com:443"
    return rule(name) or _port(port)


def reachable(text: str) -> str | None:
    """A hostname or an IP address, with a port, that the platform connects to."""
    name, _, port = text.strip().rpartition(":")
    try:
        ipaddress.ip_address(name.removeprefix("[").removesuffix("]"))
    except ValueError:
        return hostport(text)
    return _port(port)


def _port(text: str) -> str | None:
    if text.isascii() and text.isdigit() and 1 <= int(text) <= _LARGEST_PORT:
        return None
    return f"{text!r} is not a port; write a number from 1 to {_LARGEST_PORT}"


def url(text: str) -> str | None:
    """An endpoint URL, `<scheme>://<host>[:<port>]`, without path, query and user name."""
    scheme, separator, rest = text.strip().partition("://")
    if not separator:
        return f"{text!r} is not a URL; write it like https://app.example.com"
    if scheme.lower() not in _SCHEMES:
        return f"{scheme!r} is not a scheme of endpoints; use one of {', '.join(_SCHEMES)}"
    if any(sign in rest for sign in "/?#"):
        return f"{text!r} has a path; remove everything after the host and port"
    if "@" in rest:
        return "the URL contains a user name or password; remove the part before the @"
    if ":" in rest:
        return _with_port(rest, _endpoint_host)
    if scheme.lower() == "tcp":
        return f"{text!r} has no port; write a tcp URL like tcp://1.tcp.example.com:20000"
    return _endpoint_host(rest)


def _endpoint_host(text: str) -> str | None:
    """A fully qualified hostname, or `*.internal`, which needs no reservation."""
    return None if text.lower() == "*.internal" else host(text)


def cidr(text: str) -> str | None:
    """A network in CIDR notation; its address must be the first of the network."""
    if canonical.is_plain_network(text):
        return None
    address, slash, length = text.strip().partition("/")
    if not slash:
        return f"{text!r} has no prefix length; write {_single(address)} for a single address"
    try:
        network = ipaddress.ip_network(text.strip(), strict=False)
    except ValueError:
        return f"{text!r} is not a network; write it like 203.0.113.0/24 or 2001:db8::/32"
    if not length.isdigit():
        return f"{text!r} has a mask in dotted notation; write {network}"
    if ipaddress.ip_address(address) != network.network_address:
        return f"{text!r} is not the first address of its network; write {network}"
    return None


def _single(address: str) -> str:
    return f"{address}/128" if ":" in address else f"{address}/32"


def acl_rule(text: str) -> str | None:
    """`*`, `bind:<host>`, `bind:*.<domain>`, `bind:<host>:<port>`, or `bind:<key>=<value>` with `*` for either."""
    if text == "*":
        return None
    if re.search(r"\s", text):
        return f"{text!r} contains white space; remove it"
    rule, colon, target = text.partition(":")
    if not colon or rule != "bind":
        return f"{text!r} is not an ACL rule; write a bind rule, such as bind:app.example.com"
    if "=" in target:
        if _ACL_LABEL.fullmatch(target):
            return None
        return f"{text!r} is not a label rule; write bind:key=value, with * for any key or any value"
    if target in ("", "*"):
        return f"{text!r} has no host; write bind:app.example.com, or * for no restrictions"
    return _with_port(target, bindable) if ":" in target else bindable(target)


def upstream(text: str) -> str | None:
    """An address that an agent forwards to: a local port, `host:port`, or a URL."""
    where = text.strip()
    if where.isdigit():
        return _port(where)
    if not where or re.search(r"\s", where):
        return f"{text!r} is not an address; write a port such as 8080, or host:port"
    if "://" not in where and ":" in where:
        return _port(where.rpartition(":")[2])
    return None


def agent_endpoint_url(text: str) -> str | None:
    """The URL of an agent's endpoint: `<scheme>://<host>[:<port>]`, a host, a scheme alone, or nothing."""
    where = text.strip()
    scheme, rest = canonical.split_agent_url(where)
    if not where or (scheme in _SCHEMES and not rest and "://" in where):
        return None
    if scheme in ("http", "https") and "://" in where and ":" in rest:
        port = rest.rpartition(":")[2]
        if port not in ("80", "443") and not host_of_agent_url(where).endswith(".internal"):
            return f"{text!r} has the port {port}; endpoints of http and https have port 80 or 443"
    return url(where if "://" in where else f"{scheme}://{rest}")


def scheme_of_agent_url(text: str) -> str:
    """The scheme of an agent's endpoint, which a URL without one gets by its port."""
    return canonical.split_agent_url(text.strip())[0]


def host_of_agent_url(text: str) -> str:
    return canonical.split_agent_url(text.strip())[1].partition(":")[0].lower()


def agent_upstream(text: str) -> str | None:
    """The upstream of an agent's endpoint: as of a tunnel, but never with the scheme tcp."""
    scheme, separator, rest = text.strip().partition("://")
    if separator and scheme.lower() == "tcp":
        remedy = f"write {rest}" if rest else "write host:port"
        return f"{text!r} begins with tcp://, which agents refuse; {remedy}"
    if separator and not rest and scheme.lower() in ("http", "https"):
        return None
    return upstream(text)


def tunnel_name(text: str) -> str | None:
    if _TUNNEL_NAME.fullmatch(text):
        return None
    return f"{text!r} is not a valid tunnel name; use up to 100 letters, digits, '.', '_' and '-'"


def route_path(text: str) -> str | None:
    if not text.startswith("/"):
        return f"{text!r} is not a path; write it with a leading slash"
    if re.search(r"[\s?#]", text):
        return f"{text!r} is not a plain path; remove white space, query and fragment"
    return None


# --- words and timestamps ---------------------------------------------------------------------------------------------


def not_empty(text: str) -> str | None:
    return None if text.strip() else "is empty; set a value, or remove the field"


def vault_name(text: str) -> str | None:
    """The name of a vault, or of a secret in one."""
    if re.fullmatch(r"[a-zA-Z0-9_/.-]+", text):
        return None
    return f"{text!r} is not a valid name of a vault or secret; use letters, digits, '_', '-', '/' and '.'"


def tls_version(text: str) -> str | None:
    if text in _TLS_VERSIONS:
        return None
    return f"{text!r} is not a TLS version; use one of {', '.join(_TLS_VERSIONS)}"


def arn(text: str) -> str | None:
    """The name of a resource of AWS."""
    if re.fullmatch(r"arn:\S+", text):
        return None
    return f"{text!r} is not an ARN; write it like arn:aws:logs:eu-central-1:123456789012:log-group:audit"


def elliptic_curve(text: str) -> str | None:
    if re.fullmatch(r"(?:nist)?p?-?(?:256|384|521)", text.lower()):
        return None
    return f"{text!r} is not a curve of SSH keys; use 256, 384 or 521"


def event_type(text: str) -> str | None:
    if re.fullmatch(r"[a-z0-9_]+\.v[0-9]+", text):
        return None
    return f"{text!r} is not an event type; write it like ip_policy_created.v0, with its version"


def instant(text: str) -> str | None:
    """An RFC 3339 timestamp, with an offset."""
    if _INSTANT.fullmatch(text):
        try:
            datetime.fromisoformat(text.upper())
        except ValueError:
            return f"{text!r} does not exist as a date and time; check the day, hour and offset"
        return None
    return f"{text!r} is not an RFC 3339 timestamp; write it like 2030-01-31T12:00:00Z"


# --- keys and certificates --------------------------------------------------------------------------------------------


def certificates(text: str) -> str | None:
    """One certificate or a chain, as PEM: each certificate is followed by that of its issuer."""
    if (wrong := _check_label(text, "CERTIFICATE", "a certificate")) is not None:
        return wrong
    chain, wrong = _load(text)
    if wrong is None and any(below.issuer != above.subject for below, above in pairwise(chain)):
        return "this chain is out of order; write the certificate first, and after each one that of its issuer"
    return wrong


def certificate_authority(text: str) -> str | None:
    """Exactly one certificate, of an authority."""
    from cryptography import x509

    found, wrong = _load(text) if (wrong := _check_label(text, "CERTIFICATE", "a certificate")) is None else ([], wrong)
    if wrong is not None:
        return wrong
    if len(found) > 1:
        return f"this PEM contains {len(found)} certificates; declare one CertificateAuthority for each"
    try:
        constraints = found[0].extensions.get_extension_for_class(x509.BasicConstraints).value
    except (x509.ExtensionNotFound, ValueError):
        constraints = None
    if constraints is None or not constraints.ca:
        return "this is not the certificate of an authority; use one with the basic constraint CA:TRUE"
    return None


def private_key(text: str) -> str | None:
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives import serialization

    if (wrong := _check_label(text, "PRIVATE KEY", "a private key")) is not None:
        return wrong
    try:
        # The platform validates the numbers of an RSA key; doing it here would take 50 ms.
        serialization.load_pem_private_key(text.encode(), None, unsafe_skip_rsa_key_validation=True)
    except TypeError:
        return "this private key is encrypted; supply it without a passphrase"
    except (ValueError, UnsupportedAlgorithm):
        return "this PEM is damaged; supply the private key as the tool that generated it wrote it"
    return None


def ssh_public_key(text: str) -> str | None:
    """One public key, as a line of authorized_keys or as PEM."""
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives import serialization

    if "-----BEGIN" not in text or _is_private_key(text):
        wrong = ssh_line(text)
        return f"{_NO_KEY}, or as PEM" if wrong == _NO_KEY else wrong
    try:
        key = serialization.load_pem_public_key(text.strip().encode())
    except (ValueError, UnsupportedAlgorithm):
        return f"{_NO_KEY}, or as PEM"
    return _check_ssh_algorithm(key)


def ssh_line(text: str) -> str | None:
    """One public key, as a line of authorized_keys: its type, its body in base64, and perhaps a comment."""
    if _is_private_key(text):
        return "this is a private key; supply the public key, usually the file that ends in .pub"
    if "-----BEGIN" in text or "---- BEGIN SSH2" in text:
        form = "PKCS8" if "-----BEGIN" in text else "RFC4716"
        return f"this is not a line of authorized_keys; convert it with ssh-keygen -i -m {form}"
    line = text.strip()
    if "\n" in line or "\r" in line:
        return "there is more than one line; supply one public key"
    type_, *rest = line.split(None, 2) or [""]
    if type_ not in _SSH_TYPES:
        return _explain_ssh_type(line)
    if not line.isascii():
        return "its comment contains characters outside ASCII; remove the comment"
    return _load_ssh_line(line, type_) if rest else _NO_KEY


def _is_private_key(text: str) -> bool:
    return "PRIVATE KEY-----" in text or "PuTTY-User-Key-File" in text


def _load_ssh_line(line: str, type_: str) -> str | None:
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives import serialization

    try:
        return _check_ssh_algorithm(serialization.load_ssh_public_key(line.encode()))
    except (ValueError, UnsupportedAlgorithm):
        return f"the key after {type_} is damaged, or of another type; copy the whole line of the .pub file"


def _explain_ssh_type(line: str) -> str:
    """Why a line does not begin with a type of key: options, a type that the platform refuses, or no key at all."""
    words = line.split()
    first = words[0] if words else ""
    if first == "ssh-dss":
        return _NO_DSA
    if first.endswith("-cert-v01@openssh.com"):
        return "this is an SSH certificate; supply the public key that it certifies"
    after = next((word for word in words[1:] if word in (*_SSH_TYPES, "ssh-dss")), None)
    if after is not None:
        return (
            f"there are options before the key, which the platform does not accept; remove all that is before {after}"
        )
    return _NO_KEY


def _check_ssh_algorithm(key: object) -> str | None:
    from cryptography.hazmat.primitives.asymmetric import dsa, ec, ed25519, rsa

    if isinstance(key, dsa.DSAPublicKey):
        return _NO_DSA
    if isinstance(key, ec.EllipticCurvePublicKey) and key.curve.name not in _SSH_CURVES:
        return f"SSH has no keys on the curve {key.curve.name}; create one with ssh-keygen -t ed25519"
    if not isinstance(key, (rsa.RSAPublicKey, ec.EllipticCurvePublicKey, ed25519.Ed25519PublicKey)):
        return "this is neither an rsa, an ecdsa nor an ed25519 key; create one with ssh-keygen -t ed25519"
    return None


def matches_key(certificate: str, key: str) -> bool:
    """Whether the first certificate was issued for this private key. Both must be well-formed."""
    from cryptography.hazmat.primitives import serialization

    private = serialization.load_pem_private_key(key.encode(), None, unsafe_skip_rsa_key_validation=True)
    return bool(_load(certificate)[0][0].public_key() == private.public_key())


def _check_label(text: str, label: str, noun: str) -> str | None:
    """Checks the type of a PEM text by its BEGIN lines. `noun` names the expected type in messages."""
    labels = re.findall(r"-----BEGIN ([A-Z0-9 ]+)-----", text)
    if not labels:
        return f"this is not PEM; supply {noun} that begins with -----BEGIN"
    if label == "CERTIFICATE" and any("PRIVATE KEY" in found for found in labels):
        return "this PEM contains a private key; supply the certificate only"
    if not any(label in found for found in labels):
        return f"this PEM contains {labels[0].lower()}, not {label.lower()}; supply {noun}"
    return None


def _load(text: str) -> tuple[list[Any], str | None]:
    from cryptography import x509

    try:
        return x509.load_pem_x509_certificates(text.encode()), None
    except ValueError:
        return [], "this PEM is damaged; supply the certificate as it was issued"


# --- policies ---------------------------------------------------------------------------------------------------------


def traffic_policy(value: str | dict[str, Any]) -> str | None:
    """A readable policy document. `policy.findings` checks its content."""
    return None if isinstance(value, dict) else policy.why_not(value)


# --- hosts that a value mentions --------------------------------------------------------------------------------------


def hosts_of_hostports(value: Json) -> Iterator[str]:
    """Yields the host and the host:port of each item: a reserved domain is found by host, an address by host:port."""
    for hostport in value if isinstance(value, list) else ():
        if isinstance(hostport, str):
            yield from _names(hostport)


def hosts_of_url(value: Json) -> Iterator[str]:
    if not isinstance(value, str):
        return
    try:
        parts = urlsplit(value.strip())
        yield from _names(parts.netloc.rpartition("@")[2])
    except ValueError:
        return


def hosts_of_agent_url(value: Json) -> Iterator[str]:
    yield from hosts_of_url(canonical.agent_url(value))


def hosts_of_host(value: Json) -> Iterator[str]:
    if isinstance(value, str):
        yield from _names(value)


def hosts_of_acl(value: Json) -> Iterator[str]:
    for rule in value if isinstance(value, list) else ():
        if isinstance(rule, str) and rule.startswith("bind:") and "=" not in rule:
            yield from _names(rule.removeprefix("bind:"))


def _names(hostport: str) -> Iterator[str]:
    name, colon, port = hostport.strip().lower().partition(":")
    name = name.rstrip(".")
    if name and name != "*":
        yield name
        if colon and port:
            yield f"{name}:{port}"
