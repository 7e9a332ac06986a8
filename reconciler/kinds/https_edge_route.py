"""Route of an HTTPS edge."""

from __future__ import annotations

from collections.abc import Iterator
from difflib import get_close_matches
from typing import Annotated, Literal

from typing_extensions import Doc

from reconciler.kinds import canon, syntax
from reconciler.kinds.fields import Deferred, Description, Id, Metadata, NonEmpty, Text, UInt32, checked, plain
from reconciler.kinds.modules import BackendModule, IPRestrictionModule, TrafficPolicyModule
from reconciler.model.kind import (
    EqualAs,
    Finding,
    Immutable,
    Kind,
    Module,
    Parent,
    PathOnly,
    Read,
    RefTo,
    Sensitive,
    ServerDefault,
    Spec,
    Unordered,
)
from reconciler.model.problem import Severity

PROVIDERS = frozenset(
    """
    aftership airship alchemy autodesk bitbucket bolt box brex buildkite calendly castle chargify circleci clearbit
    clerk coinbase contentful docusign dropbox facebook_graph_api facebook_messenger frameio github gitlab go1 graphcms
    heroku hostedhooks hubspot instagram intercom jira launch_darkly linear mailchimp mailgun microsoft_teams
    modern_treasury mongodb mux orb orbit pagerduty pinwheel plivo pusher sendgrid sentry shopify signal_sciences slack
    sns sonatype square stripe svix terraform tiktok trendmicro_conformity twilio twitter typeform vmware webex whatsapp
    worldline xero zendesk zoom
    """.split()  # noqa: SIM905 - seventy words read better as a paragraph
)
_SECRETLESS = "sns"  # delivers through a cloud's notification topic, which signs with a public certificate
PERSISTENT = "urn:oasis:names:tc:SAML:2.0:nameid-format:persistent"


class SAMLModule(Module):
    """Who may pass, decided by a SAML identity provider."""

    options_passthrough: Annotated[bool, Doc("Let OPTIONS requests pass unauthenticated, as CORS needs.")] = False
    cookie_prefix: Annotated[Text, ServerDefault, Doc("Prefix of the session cookie.")] = ""
    inactivity_timeout: Annotated[UInt32, Doc("Seconds of inactivity that end a session.")] = 0
    maximum_duration: Annotated[UInt32, Doc("Seconds after which a session ends.")] = 0
    idp_metadata: Annotated[NonEmpty, Sensitive, Doc("The identity provider's EntityDescriptor, as XML.")]
    force_authn: Annotated[bool, Doc("Ask for credentials even when a session exists.")] = False
    allow_idp_initiated: Annotated[bool, Doc("Let the identity provider start a login.")] = False
    authorized_groups: Annotated[list[Text], Unordered, Doc("If present, only members of these groups pass.")] = []
    nameid_format: Annotated[Text, ServerDefault, Doc("The name identifier format asked for.")] = PERSISTENT


class WebhookVerificationModule(Module):
    """Only requests that the webhook provider signed may pass."""

    provider: Annotated[NonEmpty, EqualAs(canon.word), Doc("The provider that sends to this route.")]
    secret: Annotated[Text, Sensitive, Doc("What the provider signs with; every provider but sns needs one.")] = ""

    def findings(self) -> Iterator[Finding]:
        provider = plain(self.provider)
        if provider is None:
            return
        provider = provider.lower()
        if provider not in PROVIDERS:
            close = get_close_matches(provider, sorted(PROVIDERS), 1)
            remedy = f"did you mean {close[0]}?" if close else "check its spelling; the platform decides"
            yield Finding(("provider",), f"{provider!r} is not a provider we know", remedy, Severity.WARNING)
        if provider != _SECRETLESS and self.secret == "":
            yield Finding(("secret",), "is missing", "give the secret that the provider signs with")


class HTTPSEdgeRoute(Spec):
    """What happens to the requests of an HTTPS edge on one path. With an `id` and no `match`, only its modules."""

    edge_id: Annotated[Id, PathOnly, Immutable, RefTo("HTTPSEdge"), Doc("The edge it belongs to.")]
    match_type: Annotated[
        Annotated[Literal["exact_path", "path_prefix"], Deferred] | None, Doc("How `match` is compared.")
    ] = None
    match: Annotated[
        Annotated[str, checked(syntax.route_path), Deferred] | None, Doc("The path, from its first slash.")
    ] = None
    description: Description = ""
    metadata: Metadata = ""
    backend: BackendModule | None = None
    ip_restriction: IPRestrictionModule | None = None
    saml: SAMLModule | None = None
    webhook_verification: WebhookVerificationModule | None = None
    traffic_policy: TrafficPolicyModule | None = None


KIND = Kind(
    spec=HTTPSEdgeRoute,
    read=Read,
    path="/edges/https/{edge_id}/routes",
    list_key="routes",
    id_prefix="edghtsrt_",
    serves=True,
    identity=("edge_id", "match_type", "match"),
    unique=True,
    parent=Parent("HTTPSEdge", field="edge_id", embedded="routes"),
    required_unless_id=("match_type", "match"),
    # Protection is put before the backend is attached and removed after it is detached.
    modules_by_id=("ip_restriction", "saml", "webhook_verification", "traffic_policy", "backend"),
    example="""
        edge_id: {ref: HTTPSEdge/app}
        match_type: path_prefix
        match: /hooks/
        backend: {backend_id: {ref: TunnelGroupBackend/hooks}}
        webhook_verification: {provider: github, secret: {from_env: GITHUB_WEBHOOK_SECRET}}
        traffic_policy:
          value:
            on_http_response:
              - actions: [{type: compress-response, config: {algorithms: [gzip]}}]
    """,
)
