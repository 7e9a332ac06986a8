"""Modules of HTTPS routes other than authentication (`auth_modules`): headers, webhooks, circuit breaker and others."""

from collections.abc import Iterable, Iterator
from typing import Annotated, ClassVar

from typing_extensions import Doc

from reconciler.kinds.rules import access, canonical
from reconciler.kinds.types.fields import HeaderName, Headers, NonEmpty, Share, Text, UInt32, plain
from reconciler.model.fields.annotations import Between, EqualAs, Sensitive, ServerDefault, Unordered
from reconciler.model.fields.spec import Module
from reconciler.model.problem import Finding, Severity
from reconciler.model.suggestions import did_you_mean
from reconciler.model.value import reveal_text

PROVIDERS = frozenset(
    """
    aftership airship alchemy autodesk bitbucket bolt box brex buildkite calendly castle chargify circleci clearbit
    clerk coinbase contentful docusign dropbox facebook_graph_api facebook_messenger frameio github gitlab go1 graphcms
    heroku hostedhooks hubspot instagram intercom jira launch_darkly linear mailchimp mailgun microsoft_teams
    modern_treasury mongodb mux orb orbit pagerduty pinwheel plivo pusher sendgrid sentry shopify signal_sciences slack
    sns sonatype square stripe svix terraform tiktok trendmicro_conformity twilio twitter typeform vmware webex whatsapp
    worldline xero zendesk zoom
    """.split()  # noqa: SIM905 - a paragraph is easier to read than seventy lines
)
_SECRETLESS = "sns"  # delivers through a notification topic of a cloud, which signs with a public certificate
_AtLeastOne = Annotated[int, Between(1, 2**32 - 1)]


class HeadersModule(Module):
    """Headers to add and to remove."""

    add: Annotated[Headers, Doc("The headers to add, by name.")] = {}
    remove: Annotated[list[HeaderName], Unordered, Doc("The names of the headers to remove.")] = []

    def findings(self) -> Iterator[Finding]:
        yield from find_duplicate_headers(self.add, "add")


def find_duplicate_headers(headers: Iterable[str], *at: str) -> Iterator[Finding]:
    """Finds header names that differ only in case. The platform keeps one of them."""
    first: dict[str, str] = {}
    for name in headers:
        if (other := first.setdefault(name.lower(), name)) != name:
            yield Finding(
                (*at, name),
                f"duplicate of the header {other}",
                "header names are case-insensitive; remove one of the two",
                code="duplicate-item",
            )


class CompressionModule(Module):
    """Compresses responses for clients that accept it."""


class CircuitBreakerModule(Module):
    """Rejects requests while too many of them fail upstream."""

    tripped_duration: Annotated[
        _AtLeastOne | None,
        ServerDefault,
        Doc("Seconds to wait after the breaker has tripped before requests are tried again."),
    ] = None
    rolling_window: Annotated[
        _AtLeastOne | None, ServerDefault, Doc("The length of the window in which failures are counted, in seconds.")
    ] = None
    num_buckets: Annotated[
        Annotated[int, Between(1, 128)] | None,
        ServerDefault,
        Doc("The number of buckets into which the window is divided."),
    ] = None
    volume_threshold: Annotated[
        UInt32 | None, ServerDefault, Doc("The number of requests below which the breaker does not trip.")
    ] = None
    error_threshold_percentage: Annotated[
        Share | None, ServerDefault, Doc("The share of failed requests, from 0 to 1, above which the breaker trips.")
    ] = None


class WebsocketModule(Module):
    """Converts binary WebSocket messages to plain TCP for the upstream."""


class UserAgentModule(Module):
    """Filters requests by user agent."""

    raises: ClassVar = (access.RESTRICTS,)

    allow: Annotated[
        list[NonEmpty],
        Unordered,
        access.ALLOW_LIST,
        Doc("Regular expressions of user agents to allow."),
    ] = []
    deny: Annotated[
        list[NonEmpty],
        Unordered,
        access.DENY_LIST,
        Doc("Regular expressions of user agents to deny."),
    ] = []


class WebhookVerificationModule(Module):
    """Rejects requests that the webhook provider has not signed."""

    provider: Annotated[
        NonEmpty,
        EqualAs(canonical.word),
        Doc("The webhook provider that sends to this route, such as `github`, in upper or lower case."),
    ]
    secret: Annotated[
        Text,
        Sensitive,
        Doc("The secret that the provider signs with. Required for every provider except `sns`, which takes none."),
    ] = ""

    def findings(self) -> Iterator[Finding]:
        provider = plain(self.provider)
        if provider is None:
            return
        provider = provider.lower()
        if provider not in PROVIDERS:
            remedy = did_you_mean(provider, PROVIDERS) or "check the spelling"
            yield Finding(
                ("provider",),
                f"unknown webhook provider {provider!r}",
                remedy,
                Severity.WARNING,
                code="unknown-provider",
            )
        secret = reveal_text(self.secret)
        if provider != _SECRETLESS and secret == "":
            yield Finding(
                ("secret",),
                "missing required field",
                "set the secret that the provider signs with, such as `{from_env: WEBHOOK_SECRET}`",
                code="missing-field",
            )
        elif provider == _SECRETLESS and secret != "":
            yield Finding(
                ("secret",),
                f"does not apply to the provider {_SECRETLESS}, which signs without a secret",
                "remove it",
                code="field-not-applicable",
            )
