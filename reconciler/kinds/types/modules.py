"""Modules and parts that several kinds share, such as `backend` and `ip_restriction`, and their rules."""

from collections.abc import Iterator
from typing import Annotated, Any, ClassVar, Literal

from typing_extensions import Doc

from reconciler.kinds.rules import access
from reconciler.kinds.rules import traffic_policy as policies
from reconciler.kinds.types.fields import BackendId, Deferred, Id, TlsVersion, TrafficPolicy
from reconciler.model.fields.annotations import ReadAs, RefTo, ServerDefault, Unordered
from reconciler.model.fields.spec import Module, Part
from reconciler.model.problem import Finding, Severity


class BackendModule(Module):
    """The backend that receives the traffic."""

    backend_id: Annotated[BackendId, ReadAs("backend.id"), Doc("The id of the backend.")]


class IPRestrictionModule(Module):
    """Restricts the source addresses that may connect."""

    ip_policy_ids: Annotated[
        list[Annotated[Id, RefTo("IPPolicy")]],
        ReadAs("ip_policies[].id"),
        Unordered,
        Doc("The IP policies that decide which source addresses may connect."),
    ]

    def findings(self) -> Iterator[Finding]:
        if self.enabled and not self.ip_policy_ids:
            yield Finding(
                ("ip_policy_ids",), "is empty", "list at least one IP policy, or set enabled: false", code="empty-list"
            )


class MutualTLSModule(Module):
    """Requires a client certificate of one of the listed certificate authorities."""

    certificate_authority_ids: Annotated[
        list[Annotated[Id, RefTo("CertificateAuthority")]],
        ReadAs("certificate_authorities[].id"),
        Unordered,
        Doc("The certificate authorities whose client certificates are accepted."),
    ]

    def findings(self) -> Iterator[Finding]:
        if self.enabled and not self.certificate_authority_ids:
            remedy = "list at least one certificate authority, or set enabled: false"
            yield Finding(("certificate_authority_ids",), "is empty", remedy, code="empty-list")


class TLSTerminationModule(Module):
    """Where TLS is terminated. If upstream, the platform cannot read the traffic, and most modules have no effect."""

    terminate_at: Annotated[
        Literal["edge", "upstream"],
        Deferred,
        Doc("Whether TLS is terminated at the platform's edge or upstream."),
    ] = "edge"
    min_version: Annotated[
        TlsVersion | None,
        ServerDefault,
        access.TLS_VERSION,
        Doc(
            "The lowest TLS version to accept, such as `1.2`. If not set, the platform chooses one. Must not "
            "be set if TLS is terminated upstream."
        ),
    ] = None

    def findings(self) -> Iterator[Finding]:
        if self.terminate_at == "upstream" and self.min_version is not None:
            yield Finding(
                ("min_version",),
                "must be null when TLS is terminated upstream",
                "remove it, or set terminate_at: edge",
                code="field-not-applicable",
            )


class TrafficPolicyModule(Module):
    """Rules that the platform applies to each request and response."""

    raises: ClassVar = (access.FILTERS_OF_MODULE,)

    value: Annotated[
        TrafficPolicy,
        access.FILTERS,
        Doc("The traffic policy document: text, `{from_file: PATH}`, or inline YAML."),
    ]

    def findings(self) -> Iterator[Finding]:
        yield from policies.findings(self.value, "value")


class CertificatePolicy(Part):
    """Automatic certificate management: the platform obtains and renews the certificate."""

    authority: Annotated[
        Literal["letsencrypt"], Deferred, Doc("The certificate authority that issues the certificate.")
    ] = "letsencrypt"


def check_upstream_modules(termination: Any, **modules: Module | None) -> Iterator[Finding]:
    """Finds modules without effect because TLS is terminated upstream: an error for mutual_tls, otherwise a warning."""
    if not isinstance(termination, TLSTerminationModule) or termination.terminate_at != "upstream":
        return
    for name, module in modules.items():
        if module is None:
            continue
        yield Finding(
            (name,),
            "has no effect: TLS is terminated upstream, so the platform cannot read the traffic",
            "remove the module, or set tls_termination.terminate_at: edge",
            Severity.ERROR if name == "mutual_tls" else Severity.WARNING,
            code="module-without-effect",
        )
