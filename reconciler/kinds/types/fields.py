"""The annotated field types that kind files share: limits, syntax and canonical form of each type of text.

Every text field also accepts a reference, a template or a secret. Values that are known are validated here, values that
are resolved during the apply by the platform.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any, Literal

from msgspec import Struct
from typing_extensions import Doc

from reconciler.kinds.rules import canonical, secret_parts, serving, syntax
from reconciler.model import owner_record as owners
from reconciler.model.fields.annotations import (
    Between,
    Conceals,
    EqualAs,
    ImmutablePart,
    MaxBytes,
    Mentions,
    RefTo,
    Sensitive,
    Unordered,
)
from reconciler.model.fields.readers import InDoubt, Reader
from reconciler.model.fields.spec import ReadPart
from reconciler.model.problem import Finding
from reconciler.model.value import PENDING, Ref, Sealed, Secret, Template

if TYPE_CHECKING:
    from pydantic import GetCoreSchemaHandler, ValidationError
    from pydantic_core import CoreSchema, PydanticCustomError


class _Deferred(Struct, frozen=True):
    """Accepts a reference or a template unchecked, and checks the text of a secret."""

    def reader(self, read: Reader) -> Reader:
        return lambda value: _check_unless_deferred(value, read)

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        from pydantic import ValidationError, WrapValidator

        def check(value: Any, inner: Callable[[Any], Any]) -> Any:
            try:
                return _check_unless_deferred(value, inner)
            except ValidationError as wrong:
                if isinstance(value, Secret):
                    raise _wrong(_conceal_value(wrong, value.source)) from None
                raise

        return WrapValidator(check).__get_pydantic_core_schema__(source, handler)


Deferred = _Deferred()


def _check_unless_deferred(value: Any, check: Callable[[Any], Any]) -> Any:
    if value.__class__ is str:
        return check(value)
    match value:
        case Ref() | Template() | Sealed():
            return value
        case Secret():
            check(value.reveal())
            return value
    return check(value)


def _conceal_value(wrong: ValidationError, source: str) -> str:
    """The message of a validation error of a secret, without any part of the secret."""
    first = wrong.errors(include_url=False, include_context=False, include_input=False)[0]
    if first["type"] in ("discreet", "too_many_bytes"):
        return str(first["msg"])
    return f"the value of {source} is not valid for this field; correct it at its source"


class _Checked(Struct, frozen=True):
    rule: Callable[[Any], str | None]
    type_: Literal["syntax", "discreet"]

    def reader(self, read: Reader) -> Reader:
        def read_checked(value: Any) -> Any:
            if self.rule(found := read(value)) is not None:
                raise InDoubt
            return found

        return read_checked

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        from pydantic import AfterValidator

        return AfterValidator(self._check).__get_pydantic_core_schema__(source, handler)

    def _check(self, value: Any) -> Any:
        if (wrong := self.rule(value)) is not None:
            raise _wrong(wrong, self.type_)
        return value


def check_with(rule: Callable[[Any], str | None], *, discreet: bool = False) -> _Checked:
    """An annotation from a rule. The rule returns None for a valid value, otherwise `problem; remedy`.

    The messages of a discreet rule contain no part of the value and may therefore be shown for a secret too.
    """
    return _Checked(rule, "discreet" if discreet else "syntax")


def _wrong(text: str, type_: Literal["syntax", "discreet", "traffic_policy"] = "syntax") -> PydanticCustomError:
    from pydantic_core import PydanticCustomError

    return PydanticCustomError(type_, "{wrong}", {"wrong": text})  # pydantic would interpret braces in the message


Text = Annotated[str, Deferred]
Description = Annotated[str, MaxBytes(255), Deferred, Doc("Free-form description.")]
Metadata = Annotated[
    str,
    MaxBytes(owners.LIMIT),
    Deferred,
    Doc(
        f"Free-form data for programs. At least {owners.LIMIT - owners.MOST} bytes are yours: "
        f"the owner record, which is stored beside it, takes up to {owners.MOST}."
    ),
]
NonEmpty = Annotated[str, check_with(syntax.not_empty, discreet=True), Deferred]
Id = Annotated[str, check_with(syntax.not_empty, discreet=True), Deferred]
UInt32 = Annotated[int, Between(0, 2**32 - 1)]

Host = Annotated[str, check_with(syntax.host), Deferred, EqualAs(canonical.host)]
PlainHost = Annotated[str, check_with(syntax.plain_host), Deferred, EqualAs(canonical.host)]
Hostport = Annotated[str, check_with(syntax.hostport), Deferred, EqualAs(canonical.hostport)]
Reachable = Annotated[str, check_with(syntax.reachable), Deferred, EqualAs(canonical.hostport)]
Hostports = Annotated[list[Hostport], Mentions(syntax.hosts_of_hostports)]
HttpsHostport = Annotated[str, check_with(syntax.https_hostport), Deferred, EqualAs(canonical.hostport)]
HttpsHostports = Annotated[list[HttpsHostport], Mentions(syntax.hosts_of_hostports)]
TlsVersion = Annotated[str, check_with(syntax.tls_version), Deferred]
Arn = Annotated[str, check_with(syntax.arn), Deferred]
EllipticCurve = Annotated[str, check_with(syntax.elliptic_curve), Deferred]
Url = Annotated[
    str,
    check_with(syntax.url),
    Deferred,
    EqualAs(canonical.url),
    ImmutablePart(canonical.scheme, "scheme"),
    Mentions(syntax.hosts_of_url),
]
Cidr = Annotated[str, check_with(syntax.cidr), Deferred, EqualAs(canonical.cidr)]
Instant = Annotated[str, check_with(syntax.instant), Deferred, EqualAs(canonical.instant)]

CertificatePem = Annotated[str, check_with(syntax.certificates, discreet=True), Deferred, EqualAs(canonical.pem)]
CaPem = Annotated[str, check_with(syntax.certificate_authority, discreet=True), Deferred, EqualAs(canonical.pem)]
PrivateKeyPem = Annotated[
    str, check_with(syntax.private_key, discreet=True), Deferred, EqualAs(canonical.pem), Sensitive
]


def _saml_metadata(text: str) -> str | None:
    from reconciler.kinds.rules import saml  # deferred: few declare metadata, and reading it needs a parser of XML

    return saml.metadata(text)


SamlMetadata = Annotated[str, check_with(_saml_metadata, discreet=True), Deferred]
SshLine = Annotated[str, check_with(syntax.ssh_line, discreet=True), Deferred, EqualAs(canonical.ssh_key)]
SshPublicKey = Annotated[str, check_with(syntax.ssh_public_key, discreet=True), Deferred, EqualAs(canonical.ssh_key)]

AclRule = Annotated[str, check_with(syntax.acl_rule), Deferred]
Acl = Annotated[list[AclRule], Unordered, EqualAs(canonical.acl), Mentions(syntax.hosts_of_acl)]


class _Policy(Struct, frozen=True):
    """Checks a policy document in one step: with a union type, the path of an error would not end at the field."""

    def reader(self, read: Reader) -> Reader:
        return self._read

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        from pydantic import PlainValidator

        return PlainValidator(self._check).__get_pydantic_core_schema__(source, handler)

    def _read(self, value: Any) -> Any:
        if _find_wrong_policy(value) is not None:
            raise InDoubt
        return value

    def _check(self, value: Any) -> Any:
        if (wrong := _find_wrong_policy(value)) is not None:
            raise _wrong(wrong, "traffic_policy")
        return value


def _find_wrong_policy(value: Any) -> str | None:
    if isinstance(value, (Ref, Template, Sealed)):
        return None
    document = value.reveal() if isinstance(value, Secret) else value
    if not isinstance(document, (str, dict)):
        return "is not a traffic policy; write it as text, or as a mapping of phases to rules"
    return syntax.traffic_policy(document)


TrafficPolicy = Annotated[
    str | dict[str, Any], _Policy(), EqualAs(canonical.policy), Conceals(secret_parts.find_in_policy)
]
"""A traffic policy document: JSON or YAML text, or inline YAML."""

Region = Annotated[Literal["au", "eu", "ap", "us", "jp", "in", "sa"], Deferred]
EventType = Annotated[str, check_with(syntax.event_type), Deferred]
Headers = Annotated[dict[str, Text], EqualAs(canonical.headers), Conceals(secret_parts.find_in_headers)]


class ProvisioningJob(ReadPart):
    """The provisioning of a certificate, while there is one."""

    error_code: str | None = None
    msg: str | None = None
    started_at: str | None = None
    retries_at: str | None = None


class CertificateStatus(ReadPart):
    """The status of a certificate that the platform obtains."""

    renews_at: str | None = None
    provisioning_job: ProvisioningJob | None = None


VaultName = Annotated[str, check_with(syntax.vault_name), Deferred]
HeaderName = Annotated[Text, EqualAs(canonical.word)]
Share = Annotated[float, Between(0, 1), EqualAs(canonical.number)]

BackendId = Annotated[Id, RefTo(*serving.BACKENDS)]
OwnerId = Annotated[Id, RefTo("BotUser"), EqualAs(canonical.user)]


def plain(value: object) -> str | None:
    """The value if it is plain text, else None: for rules between fields, which may hold references and secrets."""
    return value if isinstance(value, str) else None


def check_period(after: object, until: object) -> Iterator[Finding]:
    """Finds a `valid_until` that is not later than `valid_after`."""
    begins, ends = plain(after), plain(until)
    if begins is not None and ends is not None and _moment(ends) <= _moment(begins):
        yield Finding(("valid_until",), "is not after valid_after", "set a later timestamp", code="invalid-period")


def check_principals(principals: Sequence[Any]) -> Iterator[Finding]:
    """Finds more principals than an SSH certificate can have."""
    if len(principals) > _MOST_PRINCIPALS:
        text = f"has {len(principals)} items, and an SSH certificate at most {_MOST_PRINCIPALS}"
        yield Finding(("principals",), text, "issue several certificates", code="invalid-value")


_MOST_PRINCIPALS = 256  # the limit of OpenSSH


def _moment(text: str) -> datetime:
    return datetime.fromisoformat(text.upper())


def find_repeated(values: Sequence[Any], *at: str | int) -> Iterator[Finding]:
    """Finds duplicates in a list of unique values."""
    for index, value in enumerate(values):
        if value != PENDING and value in values[:index]:
            yield Finding((*at, index), f"duplicate item {value}", "remove the duplicate", code="duplicate-item")
