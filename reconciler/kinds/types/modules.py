"""Modules and parts that several kinds share. Every module has `enabled`, true by default."""

from collections.abc import Iterator
from typing import Annotated, Any, Literal

from typing_extensions import Doc

from reconciler.kinds.rules import traffic_policy as policies
from reconciler.kinds.types.fields import BackendId, Deferred, Id, NonEmpty, TrafficPolicy
from reconciler.model.fields.annotations import ReadAs, RefTo, ServerDefault, Unordered
from reconciler.model.fields.spec import Module, Part
from reconciler.model.problem import Finding, Severity


class BackendModule(Module):
    """Where the traffic goes."""

    backend_id: Annotated[BackendId, ReadAs("backend.id"), Doc("The backend that serves the traffic.")]


class IPRestrictionModule(Module):
    """Which source addresses may connect."""

    ip_policy_ids: Annotated[
        list[Annotated[Id, RefTo("IPPolicy")]],
        ReadAs("ip_policies[].id"),
        Unordered,
        Doc("The IP policies that decide whether a source address may connect."),
    ]

    def findings(self) -> Iterator[Finding]:
        if self.enabled and not self.ip_policy_ids:
            yield Finding(
                ("ip_policy_ids",), "is empty", "name at least one IP policy, or say enabled: false", code="empty-list"
            )


class MutualTLSModule(Module):
    """Which authorities a client's certificate must come from."""

    certificate_authority_ids: Annotated[
        list[Annotated[Id, RefTo("CertificateAuthority")]],
        ReadAs("certificate_authorities[].id"),
        Unordered,
        Doc("The authorities whose certificates clients must present."),
    ]

    def findings(self) -> Iterator[Finding]:
        if self.enabled and not self.certificate_authority_ids:
            remedy = "name at least one authority, or say enabled: false"
            yield Finding(("certificate_authority_ids",), "is empty", remedy, code="empty-list")


class TLSTerminationModule(Module):
    """Where TLS ends: at the platform's edge, or upstream, where the platform sees no plain text."""

    terminate_at: Annotated[Literal["edge", "upstream"], Deferred, Doc("Where TLS is terminated.")] = "edge"
    min_version: Annotated[
        NonEmpty | None,
        ServerDefault,
        Doc("Lowest TLS version; the platform picks one. None when terminated upstream."),
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

    value: Annotated[TrafficPolicy, Doc("The policy document: text, a file, or inline YAML.")]

    def findings(self) -> Iterator[Finding]:
        yield from policies.findings(self.value, "value")


class CertificatePolicy(Part):
    """How the platform obtains the certificate by itself."""

    authority: Annotated[Literal["letsencrypt"], Deferred, Doc("Who issues it.")] = "letsencrypt"


def check_upstream_modules(termination: Any, **modules: Module | None) -> Iterator[Finding]:
    """Modules that cannot work on traffic the platform does not decrypt: an error for mutual_tls, else a warning."""
    if not isinstance(termination, TLSTerminationModule) or termination.terminate_at != "upstream":
        return
    for name, module in modules.items():
        if module is None:
            continue
        yield Finding(
            (name,),
            "the platform does not see this traffic, because TLS is terminated upstream",
            "remove the module, or set tls_termination.terminate_at: edge",
            Severity.ERROR if name == "mutual_tls" else Severity.WARNING,
            code="module-without-effect",
        )
