"""Modules of HTTPS routes that handle requests and responses without authentication; for that see `auth_modules`."""

from collections.abc import Iterable, Iterator
from difflib import get_close_matches
from typing import Annotated

from typing_extensions import Doc

from reconciler.kinds.rules import canonical
from reconciler.kinds.types.fields import HeaderName, Headers, NonEmpty, Share, Text, UInt32, plain
from reconciler.model.fields.annotations import Between, EqualAs, Sensitive, ServerDefault, Unordered
from reconciler.model.fields.spec import Module
from reconciler.model.problem import Finding, Severity
from reconciler.model.value import reveal_text

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
_AtLeastOne = Annotated[int, Between(1, 2**32 - 1)]


class HeadersModule(Module):
    """What becomes of the headers of each message."""

    add: Annotated[Headers, Doc("Headers that are added, by name.")] = {}
    remove: Annotated[list[HeaderName], Unordered, Doc("Names of headers that are taken away.")] = []

    def findings(self) -> Iterator[Finding]:
        yield from find_duplicate_headers(self.add, "add")


def find_duplicate_headers(headers: Iterable[str], *at: str) -> Iterator[Finding]:
    """Names of headers that differ in nothing but upper and lower case: the platform keeps one of them."""
    first: dict[str, str] = {}
    for name in headers:
        if (other := first.setdefault(name.lower(), name)) != name:
            yield Finding((*at, name), f"is the header {other} again", "keep one of the two", code="duplicate-item")


class CompressionModule(Module):
    """Responses are compressed for clients that take them so."""


class CircuitBreakerModule(Module):
    """Requests are turned away while too many of them fail upstream."""

    tripped_duration: Annotated[
        _AtLeastOne | None, ServerDefault, Doc("Seconds after which a tripped breaker looks again.")
    ] = None
    rolling_window: Annotated[_AtLeastOne | None, ServerDefault, Doc("Seconds over which failures are counted.")] = None
    num_buckets: Annotated[
        Annotated[int, Between(1, 128)] | None, ServerDefault, Doc("Pieces into which the window is divided.")
    ] = None
    volume_threshold: Annotated[UInt32 | None, ServerDefault, Doc("Requests in a piece before it can trip.")] = None
    error_threshold_percentage: Annotated[
        Share | None, ServerDefault, Doc("Share of requests that fail, from 0 to 1, beyond which it trips.")
    ] = None


class WebsocketModule(Module):
    """Binary messages of a websocket reach the upstream as plain TCP."""


class UserAgentModule(Module):
    """Which user agents may pass."""

    allow: Annotated[list[NonEmpty], Unordered, Doc("Patterns of user agents that may pass.")] = []
    deny: Annotated[list[NonEmpty], Unordered, Doc("Patterns of user agents that may not.")] = []


class WebhookVerificationModule(Module):
    """Only requests that the webhook provider signed may pass."""

    provider: Annotated[NonEmpty, EqualAs(canonical.word), Doc("The provider that sends to this route.")]
    secret: Annotated[Text, Sensitive, Doc("What the provider signs with; every provider but sns needs one.")] = ""

    def findings(self) -> Iterator[Finding]:
        provider = plain(self.provider)
        if provider is None:
            return
        provider = provider.lower()
        if provider not in PROVIDERS:
            close = get_close_matches(provider, sorted(PROVIDERS), 1)
            remedy = f"did you mean {close[0]}?" if close else "check its spelling; the platform decides"
            yield Finding(
                ("provider",),
                f"{provider!r} is not a provider we know",
                remedy,
                Severity.WARNING,
                code="unknown-provider",
            )
        secret = reveal_text(self.secret)
        if provider != _SECRETLESS and secret == "":
            yield Finding(
                ("secret",), "is missing", "give the secret that the provider signs with", code="missing-field"
            )
        elif provider == _SECRETLESS and secret != "":
            yield Finding(
                ("secret",),
                f"is not for {_SECRETLESS}, which signs with none",
                "leave it out",
                code="field-not-applicable",
            )
