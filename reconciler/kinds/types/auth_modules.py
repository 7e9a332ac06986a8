"""Modules of HTTPS routes that authenticate users: SAML, OIDC and OAuth. A route has at most one of them."""

from collections.abc import Iterator
from typing import Annotated

from typing_extensions import Doc

from reconciler.kinds.rules import access
from reconciler.kinds.types.fields import NonEmpty, SamlMetadata, Text, UInt32
from reconciler.model.fields.annotations import Sensitive, ServerDefault, Unordered
from reconciler.model.fields.spec import Module, Part
from reconciler.model.problem import Finding
from reconciler.model.value import reveal_text

PERSISTENT = "urn:oasis:names:tc:SAML:2.0:nameid-format:persistent"


class LoginModule(Module):
    """Settings that saml, oidc and oauth share."""

    options_passthrough: Annotated[
        bool,
        Doc("Whether OPTIONS requests pass without authentication, as CORS requires."),
    ] = False
    cookie_prefix: Annotated[Text, ServerDefault, Doc("The prefix of the session cookie's name.")] = ""
    inactivity_timeout: Annotated[UInt32, Doc("Seconds of inactivity after which a session times out.")] = 0
    maximum_duration: Annotated[UInt32, Doc("The longest duration of a session, in seconds.")] = 0


class SAMLModule(LoginModule):
    """Authenticates users with a SAML identity provider."""

    idp_metadata: Annotated[SamlMetadata, Sensitive, Doc("The identity provider's EntityDescriptor, as XML.")]
    force_authn: Annotated[
        bool,
        access.CLOSES,
        Doc("Whether the identity provider must ask for credentials even if a session exists."),
    ] = False
    allow_idp_initiated: Annotated[bool, access.OPENS, Doc("Whether the identity provider may start a login.")] = True
    authorized_groups: Annotated[list[Text], Unordered, Doc("If set, only members of these groups are allowed.")] = []
    nameid_format: Annotated[Text, Doc("The SAML name identifier format to request.")] = PERSISTENT


class OIDCModule(LoginModule):
    """Authenticates users with an OpenID Connect provider."""

    issuer: Annotated[NonEmpty, Doc("The URL of the provider.")]
    client_id: Annotated[NonEmpty, Doc("The client id of the application at the provider.")]
    client_secret: Annotated[NonEmpty, Sensitive, Doc("The client secret of the application at the provider.")]
    scopes: Annotated[list[Text], Unordered, Doc("The scopes to request.")] = []


class Provider(Part):
    """An OAuth provider. Without `client_id` and `client_secret` the platform's own application is used."""

    client_id: Annotated[Text, Doc("The client id of your own application at the provider.")] = ""
    client_secret: Annotated[Text, Sensitive, Doc("The client secret of your own application.")] = ""
    scopes: Annotated[list[Text], Unordered, Doc("The scopes that your own application requests.")] = []
    email_addresses: Annotated[list[Text], Unordered, Doc("If set, only these email addresses are allowed.")] = []
    email_domains: Annotated[
        list[Text], Unordered, Doc("If set, only email addresses of these domains are allowed.")
    ] = []

    def findings(self) -> Iterator[Finding]:
        secret = reveal_text(self.client_secret)
        if self.client_id == "" and secret != "":
            yield Finding(
                ("client_id",),
                "missing required field",
                "set client_id and client_secret, or remove both to use the platform's application",
                code="missing-field",
            )
        if secret == "" and self.client_id != "":
            yield Finding(
                ("client_secret",),
                "missing required field",
                "set client_id and client_secret, or remove both to use the platform's application",
                code="missing-field",
            )
        if self.scopes and self.client_id == "":
            yield Finding(
                ("scopes",),
                "requires an application of your own",
                "set client_id and client_secret, or remove scopes",
                code="field-not-applicable",
            )


class GitHub(Provider):
    """GitHub, which can also restrict access to teams and organizations."""

    teams: Annotated[list[Text], Unordered, Doc("If set, only members of these teams are allowed.")] = []
    organizations: Annotated[
        list[Text], Unordered, Doc("If set, only members of these organizations are allowed.")
    ] = []


class Providers(Part):
    """The OAuth provider. Exactly one member must be set."""

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
        set_members = [name for name in members if getattr(self, name) is not None]
        if not set_members:
            yield Finding((), "has no provider", f"set exactly one of {', '.join(members)}", code="missing-field")
        for extra in set_members[1:]:
            yield Finding(
                (extra,),
                f"is a second provider besides {set_members[0]}",
                f"remove {extra} or {set_members[0]}",
                code="conflicting-fields",
            )


class OAuthModule(LoginModule):
    """Authenticates users with an OAuth provider."""

    provider: Providers
    auth_check_interval: Annotated[
        UInt32, Doc("Seconds after which a user's authorization is checked with the provider again.")
    ] = 0
