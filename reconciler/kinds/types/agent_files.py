"""The two layouts of an agent's configuration file, version 2 and version 3: every key with its type and its rules.

`LAYOUTS` is the table of both. The kind AgentConfig declares the same keys, the emulated agent reads files by it.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Final, Literal

from msgspec import Struct
from typing_extensions import Doc

from reconciler.kinds.rules import canonical, secret_parts, syntax
from reconciler.kinds.rules import traffic_policy as policies
from reconciler.kinds.types.fields import (
    Cidr,
    Deferred,
    Description,
    NonEmpty,
    Share,
    Text,
    TrafficPolicy,
    check_with,
    plain,
)
from reconciler.model.fields.annotations import Conceals, Described, EqualAs, MaxBytes, Sensitive
from reconciler.model.fields.field import Field, fields_of
from reconciler.model.fields.spec import Part, Spec
from reconciler.model.problem import Finding, Severity

BINDINGS: Final = ("public", "internal", "kubernetes")
_DURATION: Final = re.compile(r"(?:\d+(?:\.\d+)?(?:ns|us|µs|ms|s|m|h))+")
_LABEL: Final = re.compile(r"[^=\s]+=[^=\s]*")
_SHORTEST_PASSWORD, _LONGEST_USER = 8, 128
_KEYS_OF_LABELED: Final = ("labels", "addr", "inspect", "crt", "key", "metadata")


# --- syntax -----------------------------------------------------------------------------------------------------------


def _duration(text: str) -> str | None:
    return None if _DURATION.fullmatch(text) else f"{text!r} is not a duration; write it like 10s or 1m30s"


def _server(text: str) -> str | None:
    """An address that the agent connects to, `host:port` without a scheme."""
    if "://" in text or "/" in text:
        return f"{text!r} is a URL; write the host and the port only, as in connect.example.com:443"
    return syntax.not_empty(text)


def _label(text: str) -> str | None:
    return None if _LABEL.fullmatch(text) else f"{text!r} is not a label; write it like service=orders"


def _header(text: str) -> str | None:
    name, colon, _ = text.partition(":")
    return None if colon and name.strip() else f"{text!r} is not a header; write it like name:value"


def _user_and_password(text: str) -> str | None:
    user, colon, password = text.partition(":")
    if not colon or not user:
        return "is no user with a password; write user:password"
    if len(password) < _SHORTEST_PASSWORD:
        return f"the password is shorter than {_SHORTEST_PASSWORD} characters; use a longer one"
    return f"the user name is longer than {_LONGEST_USER} characters; shorten it" if len(user) > _LONGEST_USER else None


def _off(flag: bool) -> str | None:
    return "is true, which means nothing here; write false, or a text" if flag else None


Duration = Annotated[str, check_with(_duration), Deferred]
Server = Annotated[str, check_with(_server), Deferred]
Off = Annotated[bool, check_with(_off)]
Upstream = Annotated[Annotated[str, check_with(syntax.upstream), Deferred], EqualAs(canonical.upstream)]
TunnelHost = Annotated[Annotated[str, check_with(syntax.plain_host), Deferred], EqualAs(canonical.tunnel_host)]
UserAndPassword = Annotated[str, check_with(_user_and_password, discreet=True), Deferred, Sensitive]
ProxyProto = Annotated[Literal["1", "2", ""], Deferred]
Policy = Annotated[
    TrafficPolicy | None,
    Doc("The traffic policy of the agent's endpoint. A policy in text form is written as a map."),
]


# --- settings of the agent --------------------------------------------------------------------------------------------


class AgentOptions(Spec):
    """The settings of an agent that both versions have."""

    authtoken: Annotated[
        NonEmpty | None, Sensitive, Doc("The authtoken itself, instead of `credential`; preferably `{from_env: NAME}`.")
    ] = None
    api_key: Annotated[NonEmpty | None, Sensitive, Doc("The API key for the API commands of the agent's program.")] = (
        None
    )
    connect_interface: Annotated[NonEmpty | None, Doc("The network interface to connect from. On Linux only.")] = None
    connect_timeout: Annotated[Duration | None, Doc("How long a connection attempt may take, as in `10s`.")] = None
    console_ui: Annotated[
        bool | Literal["iftty"] | None,
        Described("true, false or `iftty`"),
        Doc("Whether the agent shows its console: `iftty` if it runs in a terminal."),
    ] = None
    console_ui_color: Annotated[Literal["black", "transparent"] | None, Doc("The background of the console.")] = None
    crl_noverify: Annotated[bool | None, Doc("Whether the agent skips certificate revocation lists.")] = None
    dns_resolver_ips: Annotated[
        list[NonEmpty] | None, Doc("The DNS servers that the agent uses, instead of those of the system.")
    ] = None
    heartbeat_interval: Annotated[Duration | None, Doc("The time between two heartbeats of the connection.")] = None
    heartbeat_tolerance: Annotated[
        Duration | None, Doc("How long the agent waits for a heartbeat before it connects again.")
    ] = None
    inspect_db_size: Annotated[
        int | None, Doc("Bytes of memory for captured requests: 0 for 50 MB, -1 for no inspection at all.")
    ] = None
    log: Annotated[
        NonEmpty | Off | None,
        Described("text or false"),
        Doc("Where the agent logs: `stdout`, `stderr`, a file, or false."),
    ] = None
    log_format: Annotated[Literal["term", "logfmt", "json"] | None, Doc("The format of the log.")] = None
    log_level: Annotated[
        Literal["crit", "warn", "error", "info", "debug"] | None, Doc("The least severity that is logged.")
    ] = None
    metadata: Annotated[
        Annotated[str, MaxBytes(4096), Deferred] | None,
        Doc("Free-form data of the agent, which the platform shows on its tunnel session."),
    ] = None
    proxy_url: Annotated[
        NonEmpty | None,
        Sensitive,
        Conceals(secret_parts.find_in_policy),
        Doc("The HTTP or SOCKS5 proxy to connect through. A URL with a password is a secret."),
    ] = None
    remote_management: Annotated[
        bool | None, Doc("Whether the management API may stop, restart and update the agent.")
    ] = None
    update_channel: Annotated[Literal["stable", "unstable", "beta"] | None, Doc("The releases for updates.")] = None
    update_check: Annotated[bool | None, Doc("Whether the agent looks for updates.")] = None
    web_addr: Annotated[
        NonEmpty | Off | None,
        Described("text or false"),
        Doc("The address of the agent's local API and inspection pages, or false for none."),
    ] = None
    web_allow_hosts: Annotated[
        list[NonEmpty] | None,
        Doc("Names and networks in the `Host` header of requests to the local API, besides those of this host."),
    ] = None


class AgentOptions2(AgentOptions):
    """The settings of an agent in version 2, which are at the top level of its file."""

    server_addr: Annotated[
        Server | None, Doc("Version 2: the address that the agent connects to, instead of `ingress`.")
    ] = None
    root_cas: Annotated[
        NonEmpty | None, Doc("Version 2: the authorities that the agent trusts: `trusted`, `host`, or a PEM file.")
    ] = None


class AgentOptions3(AgentOptions):
    """The settings of an agent in version 3, which are below `agent` in its file."""

    connect_url: Annotated[
        Server | None, Doc("Version 3: the address that the agent connects to, instead of `ingress`.")
    ] = None
    connect_cas: Annotated[
        NonEmpty | None, Doc("Version 3: the authorities that the agent trusts: `trusted`, `host`, or a PEM file.")
    ] = None


# --- tunnels ----------------------------------------------------------------------------------------------------------


class Protos(Struct, frozen=True):
    """The protocols of the tunnels that a setting applies to."""

    names: tuple[str, ...]


_HTTP, _TLS, _HTTP_OR_TLS = Protos(("http",)), Protos(("tls",)), Protos(("http", "tls"))


class Addresses(Part):
    """Networks that may connect, and networks that may not."""

    allow_cidrs: Annotated[list[Cidr], Doc("Networks that may connect. If there are any, no others may.")] = []
    deny_cidrs: Annotated[list[Cidr], Doc("Networks that may not connect.")] = []


class ConfiguredOAuth(Part):
    """Sign-in with an OAuth provider."""

    provider: Annotated[NonEmpty, Doc("The provider, such as `google`.")]
    allow_domains: Annotated[list[NonEmpty], Doc("Domains whose users may sign in.")] = []
    allow_emails: Annotated[list[NonEmpty], Doc("Users who may sign in.")] = []
    scopes: Annotated[list[NonEmpty], Doc("The scopes to ask for.")] = []


class ConfiguredOIDC(Part):
    """Sign-in with an OpenID Connect provider."""

    issuer_url: Annotated[NonEmpty, Doc("The URL of the provider.")]
    client_id: Annotated[NonEmpty, Doc("The id of the client.")]
    client_secret: Annotated[NonEmpty, Sensitive, Doc("The secret of the client.")]
    scopes: Annotated[list[NonEmpty], Doc("The scopes to ask for.")] = []


class HeaderChanges(Part):
    """Headers that are added and removed."""

    add: Annotated[list[Annotated[str, check_with(_header), Deferred]], Doc("Headers to add, as `name:value`.")] = []
    remove: Annotated[list[NonEmpty], Doc("Names of headers to remove.")] = []


class UserAgents(Part):
    """User agents that may connect, and user agents that may not."""

    allow: Annotated[list[NonEmpty], Doc("Regular expressions (RE2) of user agents that may connect.")] = []
    deny: Annotated[list[NonEmpty], Doc("Regular expressions (RE2) of user agents that may not connect.")] = []


class Webhook(Part):
    """Verification of webhooks."""

    provider: Annotated[NonEmpty, Doc("The sender, such as `github`.")]
    secret: Annotated[NonEmpty, Sensitive, Doc("The secret that the sender signs with.")]


class ConfiguredTunnel(Part):
    """A tunnel that the agent opens when it starts."""

    proto: Annotated[
        Annotated[Literal["http", "tcp", "tls"], Deferred] | None,
        Doc("The protocol of the tunnel. Required unless `labels` are set."),
    ] = None
    labels: Annotated[
        list[Annotated[str, check_with(_label), Deferred]] | None,
        Doc("Version 2: instead of `proto`, the labels by which tunnel group backends find the tunnel."),
    ] = None
    addr: Annotated[Upstream, Doc("The address that the agent forwards to: a local port, `host:port`, or a URL.")]
    name: Annotated[NonEmpty | None, Doc("The name of the tunnel's endpoint on the platform.")] = None
    description: Annotated[Description | None, Doc("The description of the tunnel's endpoint on the platform.")] = None
    metadata: Annotated[
        Annotated[str, MaxBytes(4096), Deferred] | None, Doc("The metadata of the tunnel and of its endpoint.")
    ] = None
    url: Annotated[NonEmpty | None, Doc("The URL of the tunnel, instead of `domain` or `remote_addr`.")] = None
    domain: Annotated[
        TunnelHost | None,
        Doc("The hostname of the tunnel: a reserved domain, or a name below a reserved wildcard domain. Not for tcp."),
    ] = None
    hostname: Annotated[TunnelHost | None, _HTTP_OR_TLS, Doc("The old name of `domain`.")] = None
    subdomain: Annotated[NonEmpty | None, _HTTP_OR_TLS, Doc("A name below the platform's own domain (old).")] = None
    remote_addr: Annotated[
        Annotated[Annotated[str, check_with(syntax.hostport), Deferred], EqualAs(canonical.tunnel_host)] | None,
        Doc("The reserved address of a tcp tunnel, as `host:port`."),
    ] = None
    schemes: Annotated[
        list[Annotated[Literal["http", "https"], Deferred]] | None, _HTTP, Doc("The schemes of an http tunnel.")
    ] = None
    inspect: Annotated[bool | None, _HTTP, Doc("Whether the agent records requests for inspection.")] = None
    basic_auth: Annotated[
        list[UserAndPassword] | None, _HTTP, Doc("Users with their passwords, as `user:password`.")
    ] = None
    circuit_breaker: Annotated[
        Share | None, _HTTP, Doc("The share of failed requests above which requests are rejected.")
    ] = None
    compression: Annotated[bool | None, _HTTP, Doc("Whether responses are compressed.")] = None
    websocket_tcp_converter: Annotated[bool | None, _HTTP, Doc("Whether WebSockets become tcp connections.")] = None
    host_header: Annotated[
        NonEmpty | None, _HTTP, Doc("The `Host` header that the upstream gets: `rewrite`, `preserve`, or a value.")
    ] = None
    ip_restriction: Annotated[Addresses | None, Doc("Networks that may connect.")] = None
    proxy_proto: Annotated[ProxyProto | None, Doc("The version of the PROXY protocol that the upstream gets.")] = None
    mutual_tls_cas: Annotated[
        NonEmpty | None, _HTTP_OR_TLS, Doc("A PEM file with the authorities of client certificates.")
    ] = None
    crt: Annotated[NonEmpty | None, _TLS, Doc("The file of the certificate that terminates TLS.")] = None
    key: Annotated[NonEmpty | None, _TLS, Doc("The file of the certificate's private key.")] = None
    terminate_at: Annotated[
        Annotated[Literal["edge", "agent", "upstream"], Deferred] | None, _TLS, Doc("Where TLS is terminated.")
    ] = None
    oauth: Annotated[ConfiguredOAuth | None, _HTTP] = None
    oidc: Annotated[ConfiguredOIDC | None, _HTTP] = None
    request_header: Annotated[HeaderChanges | None, _HTTP, Doc("Changes of request headers.")] = None
    response_header: Annotated[HeaderChanges | None, _HTTP, Doc("Changes of response headers.")] = None
    user_agent_filter: Annotated[UserAgents | None, _HTTP] = None
    verify_webhook: Annotated[Webhook | None, _HTTP] = None
    traffic_policy: Policy = None

    def findings(self) -> Iterator[Finding]:
        if (self.proto is None) == (self.labels is None):
            wrong = "has no proto" if self.proto is None else "has both proto and labels"
            yield Finding((), wrong, "set proto, or labels in a file of version 2", code="conflicting-fields")
        elif self.labels is not None:
            yield from self._check_labeled()
        elif isinstance(self.proto, str):
            yield from check_address_fields(self.proto, self.domain, self.remote_addr)
            yield from check_upstream(self.proto, self.addr)
            yield from self._check_proto(self.proto)
        yield from check_certificate_files(vars(self))
        yield from policies.findings(self.traffic_policy, "traffic_policy")

    def _set(self) -> Iterator[str]:
        return (name for name, value in vars(self).items() if value not in (None, False, "", []))

    def _check_labeled(self) -> Iterator[Finding]:
        for name in self._set():
            if name not in _KEYS_OF_LABELED:
                allowed = ", ".join(_KEYS_OF_LABELED)
                text = "does not apply to a tunnel with labels"
                yield Finding((name,), text, f"keep only {allowed}", code="field-not-applicable")

    def _check_proto(self, proto: str) -> Iterator[Finding]:
        for name in self._set():
            words = type(self).model_fields[name].metadata
            protos = next((word.names for word in words if isinstance(word, Protos)), (proto,))
            if proto not in protos:
                allowed = " and ".join(protos)
                text = f"does not apply to a {proto} tunnel"
                yield Finding((name,), text, f"remove it: it is for {allowed}", code="field-not-applicable")


def check_address_fields(proto: str, domain: object, remote_addr: object) -> Iterator[Finding]:
    """Finds an address field that does not apply to the protocol: `domain` of tcp, `remote_addr` of http and tls."""
    if proto == "tcp" and domain is not None:
        yield Finding(
            ("domain",),
            "does not apply to a tcp tunnel",
            "remove it, or set remote_addr to a reserved address",
            code="field-not-applicable",
        )
    if proto in ("http", "tls") and remote_addr is not None:
        yield Finding(
            ("remote_addr",),
            f"applies only to tcp tunnels, not to {proto}",
            "remove it, or set domain to a reserved domain",
            code="field-not-applicable",
        )


def check_upstream(proto: str, addr: object, *at: str) -> Iterator[Finding]:
    """Finds an upstream address that lacks the port that tcp and tls need; http has the default port 80."""
    where = addr.strip().rpartition("://")[2] if isinstance(addr, str) else ""
    if proto in ("tcp", "tls") and where and not where.isdigit() and ":" not in where.rpartition("]")[2]:
        yield Finding(
            at or ("addr",),
            f"{addr!r} has no port, which {'an endpoint' if at else 'a tunnel'} of {proto} needs",
            f"write {where}:PORT",
            code="invalid-value",
        )


def check_certificate_files(settings: Mapping[str, Any]) -> Iterator[Finding]:
    """Finds one of `crt` and `key` without the other, and `mutual_tls_cas` of a tls tunnel without both."""
    crt, key = settings.get("crt"), settings.get("key")
    if (crt is None) != (key is None):
        present, absent = ("crt", "key") if key is None else ("key", "crt")
        yield Finding((present,), f"is set without {absent}", f"set {absent}, or remove it", code="missing-field")
    if settings.get("mutual_tls_cas") is not None and settings.get("proto") == "tls" and crt is None and key is None:
        text = "is set without crt and key, which a tls tunnel needs for it"
        yield Finding(("mutual_tls_cas",), text, "set crt and key, or remove it", code="missing-field")


# --- endpoints --------------------------------------------------------------------------------------------------------

EndpointUrl = Annotated[str, check_with(syntax.agent_endpoint_url), Deferred, EqualAs(canonical.url)]
EndpointUpstream = Annotated[str, check_with(syntax.agent_upstream), Deferred]


class ConfiguredUpstream(Part):
    """The service that an endpoint of the agent forwards to."""

    url: Annotated[
        EndpointUpstream,
        EqualAs(canonical.upstream),
        Doc("The address: a local port, `host:port`, or a URL. Endpoints of tcp and tls need a port."),
    ]
    protocol: Annotated[
        Annotated[Literal["http1", "http2"], Deferred] | None, Doc("The version of HTTP. If not set: http1.")
    ] = None
    proxy_protocol: Annotated[ProxyProto | None, Doc("The version of the PROXY protocol that the upstream gets.")] = (
        None
    )


class AgentTLSTermination(Part):
    """Termination of TLS by the agent. For endpoints of tls only. Each value is a path or PEM text."""

    server_certificate: Annotated[NonEmpty | None, Doc("The certificate of the endpoint.")] = None
    server_private_key: Annotated[
        NonEmpty | None,
        Sensitive,
        Conceals(secret_parts.find_in_policy),
        Doc("The private key of the certificate. PEM text is a secret."),
    ] = None
    mutual_tls_certificate_authorities: Annotated[
        list[NonEmpty] | None, Doc("The authorities of client certificates.")
    ] = None


class ConfiguredEndpoint(Part):
    """An endpoint that the agent opens when it starts."""

    name: Annotated[
        Annotated[str, check_with(syntax.tunnel_name), Deferred], Doc("The name, unique within the configuration.")
    ]
    url: Annotated[
        EndpointUrl | None,
        Doc(
            "The URL, as `scheme://host[:port]`; a host alone is of https. A scheme alone, such as `tcp://`, gets an "
            "address of the platform. If not set: https, with a hostname of the platform."
        ),
    ] = None
    upstream: ConfiguredUpstream
    bindings: Annotated[
        list[Annotated[Literal["public", "internal", "kubernetes"], Deferred]] | None,
        Doc("Where the endpoint can be reached; at most one binding. If not set, it follows from the URL."),
    ] = None
    description: Annotated[Description | None, Doc("The description of the endpoint on the platform.")] = None
    metadata: Annotated[
        Annotated[str, MaxBytes(4096), Deferred] | None, Doc("The metadata of the endpoint on the platform.")
    ] = None
    traffic_policy: Policy = None
    traffic_policy_file: Annotated[
        NonEmpty | None, Doc("A file with the traffic policy, on the agent's host, instead of `traffic_policy`.")
    ] = None
    pooling_enabled: Annotated[
        bool | None, Doc("Whether several endpoints may share the URL and its traffic. If not set: no.")
    ] = None
    inspect: Annotated[bool | None, Doc("Whether the agent records requests for inspection.")] = None
    agent_tls_termination: AgentTLSTermination | None = None

    def findings(self) -> Iterator[Finding]:
        yield from check_endpoint(vars(self) | {"upstream": vars(self.upstream)})
        yield from policies.findings(self.traffic_policy, "traffic_policy")


def check_endpoint(endpoint: Mapping[str, Any]) -> Iterator[Finding]:
    """The rules between the settings of an endpoint: those of its file, its binding, and what its upstream needs."""
    yield from check_endpoint_settings(endpoint)
    url, bindings = endpoint.get("url"), endpoint.get("bindings") or []
    if len(bindings) == 1 and isinstance(url, str):
        yield from _check_binding(url, syntax.scheme_of_agent_url(url), bindings[0])
    yield from check_upstream(_scheme(url), endpoint["upstream"].get("url"), "upstream", "url")


def check_endpoint_settings(endpoint: Mapping[str, Any]) -> Iterator[Finding]:
    """Finds several bindings, two policies, and termination of TLS that the endpoint does not have."""
    bindings, scheme = endpoint.get("bindings") or [], _scheme(endpoint.get("url"))
    if len(bindings) > 1:
        text = f"has {len(bindings)} items, and an endpoint of an agent at most one binding"
        yield Finding(("bindings",), text, "keep one", code="binding-mismatch")
    if endpoint.get("agent_tls_termination") is not None and scheme not in ("tls", ""):
        yield Finding(
            ("agent_tls_termination",),
            f"does not apply to an endpoint of {scheme}",
            "remove it, or set a url that begins with tls://",
            code="field-not-applicable",
        )
    if endpoint.get("traffic_policy") is not None and endpoint.get("traffic_policy_file") is not None:
        yield Finding(
            ("traffic_policy_file",),
            "cannot be combined with traffic_policy",
            "remove traffic_policy_file or traffic_policy",
            code="conflicting-fields",
        )


def _scheme(url: object) -> str:
    """The scheme of the URL of an endpoint; empty if it is not known."""
    return syntax.scheme_of_agent_url(url or "") if isinstance(url, str | None) else ""


def _check_binding(url: str, scheme: str, binding: object) -> Iterator[Finding]:
    host = syntax.host_of_agent_url(url)
    if not isinstance(binding, str) or binding not in BINDINGS:
        return
    is_internal = host.endswith(".internal")
    if is_internal != (binding == "internal"):
        yield Finding(
            ("bindings",),
            f"{url or 'an endpoint without a URL'} {'requires' if is_internal else 'cannot have'} the binding internal",
            "remove bindings, or use a host below .internal" if not is_internal else "remove bindings",
            code="binding-mismatch",
        )
    if binding == "kubernetes" and scheme == "https":
        text, remedy = "the binding kubernetes is not available for https", "use a URL with http, tls or tcp"
        yield Finding(("bindings",), text, remedy, code="binding-mismatch")
    if binding == "kubernetes" and host and len(host.split(".")) != 2:
        text, remedy = f"{host} is not a service of Kubernetes", "write the host as service.namespace"
        yield Finding(("bindings",), text, remedy, code="binding-mismatch")


# --- layouts ----------------------------------------------------------------------------------------------------------


class File2(AgentOptions2):
    """A configuration file of version 2."""

    version: Annotated[Text, Doc("The version of the layout.")]
    region: Text | None = None
    tunnels: dict[str, ConfiguredTunnel] = {}


class File3(Part):
    """A configuration file of version 3."""

    version: Annotated[Text, Doc("The version of the layout.")]
    agent: AgentOptions3 | None = None
    endpoints: list[ConfiguredEndpoint] = []
    tunnels: dict[str, ConfiguredTunnel] = {}


class Layout(Struct, frozen=True, eq=False):
    """One version of the file.

    options  the settings of the agent, in the order in which they are written
    below    the key that has them; empty if they are at the top level
    server   the setting with the address that the agent connects to
    renamed  settings of the other version that have another name here, or none (None)
    """

    version: str
    file: tuple[Field, ...]
    options: tuple[str, ...]
    below: str
    server: str
    renamed: Mapping[str, str | None]


def _names(options: type[AgentOptions], server: str) -> tuple[str, ...]:
    own = [name for name in options.model_fields if name not in AgentOptions.model_fields]
    first = ["authtoken", server]
    return tuple(dict.fromkeys([*first, *own, *AgentOptions.model_fields]))


LAYOUTS: Final[Mapping[str, Layout]] = {
    "2": Layout(
        version="2",
        file=fields_of(File2),
        options=_names(AgentOptions2, "server_addr"),
        below="",
        server="server_addr",
        renamed={"connect_url": "server_addr", "connect_cas": "root_cas", "endpoints": "tunnels"},
    ),
    "3": Layout(
        version="3",
        file=fields_of(File3),
        options=_names(AgentOptions3, "connect_url"),
        below="agent",
        server="connect_url",
        renamed={"server_addr": "connect_url", "root_cas": "connect_cas"},
    ),
}


def choose_version(settings: Mapping[str, Any]) -> str:
    """The version of a configuration: as declared, otherwise the one that has its settings, and 2 if both do."""
    declared = plain(settings.get("version"))
    if declared is not None:
        return declared
    return "3" if any(settings.get(name) for name in LAYOUTS["2"].renamed) else "2"


def check_version(settings: Mapping[str, Any]) -> Iterator[Finding]:
    """Finds settings that the version of the configuration does not have."""
    layout = LAYOUTS.get(choose_version(settings))
    if layout is None:
        return
    for name, own in layout.renamed.items():
        if settings.get(name):
            other = "3" if layout.version == "2" else "2"
            yield Finding(
                (name,),
                f"is a setting of version {other}, and the configuration has version {layout.version}",
                f'set {own}, or version: "{other}"',
                code="field-not-applicable",
            )
    if layout.version == "3":
        yield from _check_old_tunnels(settings.get("tunnels") or {})


def _check_old_tunnels(tunnels: Mapping[str, Any]) -> Iterator[Finding]:
    for name, tunnel in tunnels.items():
        labels = tunnel.get("labels") if isinstance(tunnel, Mapping) else getattr(tunnel, "labels", None)
        if labels:
            text, remedy = "do not exist in version 3", 'use an endpoint, or version: "2"'
            yield Finding(("tunnels", name, "labels"), text, remedy, code="field-not-applicable")
    if tunnels:
        text, remedy = "are deprecated in version 3", "declare endpoints instead"
        yield Finding(("tunnels",), text, remedy, Severity.WARNING, code="deprecated-field")
