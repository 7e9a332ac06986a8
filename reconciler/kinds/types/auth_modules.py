"""Modules of HTTPS routes that authenticate users: SAML, OIDC and OAuth. A route has at most one of them."""

from collections.abc import Iterator
from typing import Annotated

from typing_extensions import Doc

from reconciler.kinds.types.fields import NonEmpty, Text, UInt32
from reconciler.model.fields.annotations import Sensitive, ServerDefault, Unordered
from reconciler.model.fields.spec import Module, Part
from reconciler.model.problem import Finding
from reconciler.model.value import reveal_text

PERSISTENT = "urn:oasis:names:tc:SAML:2.0:nameid-format:persistent"


class LoginModule(Module):
    """What the three ways to sign in have in common."""

    options_passthrough: Annotated[bool, Doc("Let OPTIONS requests pass unauthenticated, as CORS needs.")] = False
    cookie_prefix: Annotated[Text, ServerDefault, Doc("Prefix of the session cookie.")] = ""
    inactivity_timeout: Annotated[UInt32, Doc("Seconds of inactivity that end a session.")] = 0
    maximum_duration: Annotated[UInt32, Doc("Seconds after which a session ends.")] = 0


class SAMLModule(LoginModule):
    """Who may pass, decided by a SAML identity provider."""

    idp_metadata: Annotated[NonEmpty, Sensitive, Doc("The identity provider's EntityDescriptor, as XML.")]
    force_authn: Annotated[bool, Doc("Ask for credentials even when a session exists.")] = False
    allow_idp_initiated: Annotated[bool, Doc("Let the identity provider start a login.")] = True
    authorized_groups: Annotated[list[Text], Unordered, Doc("If present, only members of these groups pass.")] = []
    nameid_format: Annotated[Text, Doc("The name identifier format asked for.")] = PERSISTENT


class OIDCModule(LoginModule):
    """Who may pass, decided by an OpenID provider."""

    issuer: Annotated[NonEmpty, Doc("The provider's address.")]
    client_id: Annotated[NonEmpty, Doc("The application's id at the provider.")]
    client_secret: Annotated[NonEmpty, Sensitive, Doc("The application's secret at the provider.")]
    scopes: Annotated[list[Text], Unordered, Doc("What is asked of the provider.")] = []


class Provider(Part):
    """Somebody who knows users. With no application of your own the platform's is used."""

    client_id: Annotated[Text, Doc("The id of an application of your own.")] = ""
    client_secret: Annotated[Text, Sensitive, Doc("That application's secret.")] = ""
    scopes: Annotated[list[Text], Unordered, Doc("What your application asks for.")] = []
    email_addresses: Annotated[list[Text], Unordered, Doc("If present, only these addresses pass.")] = []
    email_domains: Annotated[list[Text], Unordered, Doc("If present, only addresses of these domains pass.")] = []

    def findings(self) -> Iterator[Finding]:
        secret = reveal_text(self.client_secret)
        if self.client_id == "" and secret != "":
            yield Finding(
                ("client_id",),
                "is missing",
                "an application has an id and a secret: give both or neither",
                code="missing-field",
            )
        if secret == "" and self.client_id != "":
            yield Finding(
                ("client_secret",),
                "is missing",
                "an application has an id and a secret: give both",
                code="missing-field",
            )
        if self.scopes and self.client_id == "":
            yield Finding(
                ("scopes",),
                "are for an application of your own",
                "give client_id and client_secret",
                code="field-not-applicable",
            )


class GitHub(Provider):
    """GitHub, which knows teams and organizations as well."""

    teams: Annotated[list[Text], Unordered, Doc("If present, only members of these teams pass.")] = []
    organizations: Annotated[list[Text], Unordered, Doc("If present, only members of these pass.")] = []


class Providers(Part):
    """Who knows the users: exactly one of its members."""

    github: GitHub | None = None
    facebook: Provider | None = None
    microsoft: Provider | None = None
    google: Provider | None = None
    linkedin: Provider | None = None
    gitlab: Provider | None = None
    twitch: Provider | None = None
    amazon: Provider | None = None

    def findings(self) -> Iterator[Finding]:
        members = tuple(Providers.model_fields)
        found = [name for name in members if getattr(self, name) is not None]
        if not found:
            yield Finding((), "names nobody", f"set exactly one of {', '.join(members)}", code="missing-field")
        for extra in found[1:]:
            yield Finding(
                (extra,), f"is a second provider beside {found[0]}", "keep exactly one", code="conflicting-fields"
            )


class OAuthModule(LoginModule):
    """Who may pass, decided by one of the well-known OAuth providers."""

    provider: Providers
    auth_check_interval: Annotated[UInt32, Doc("Seconds after which the provider is asked anew.")] = 0
