"""The emulated agent: authenticates with an authtoken, opens and closes endpoints and tunnels. `api` is its HTTP API.

Whatever runs is stored in the database, so that the management API lists it: an ephemeral endpoint, a tunnel and a
tunnel session, as objects of the collections `CloudEndpoint`, `Tunnel` and `TunnelSession`. They are deleted when the
agent ends. An endpoint of the agent's API and a tunnel of its older API differ in form only: no two of them have one
name, and each list has those that were started in its form.

A sandbox has one agent in its own process, whose id is empty, and those that connect (`sessions`).
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, Literal

from msgspec.structs import replace

from reconciler.model.value import Json
from reconciler.sandbox.agent import config_files, endpoints, tunnel_settings, tunnels
from reconciler.sandbox.agent.exchanges import CapturedRequests
from reconciler.sandbox.base import certificates, derive, vocabulary
from reconciler.sandbox.base.database import Document, Stored
from reconciler.sandbox.operations import events
from reconciler.sandbox.operations.objects import PLATFORM_DOMAIN, Objects
from reconciler.sandbox.wire.responses import ref

TUNNELS: Final = "AgentTunnel"
ENDPOINTS: Final = "AgentEndpoint"
"""The collections of what runs: started as a tunnel of the older API, or as an endpoint."""
_ENDPOINT, _TUNNEL, _SESSION = "CloudEndpoint", "Tunnel", "TunnelSession"
VERSION = "3.30.0"
_NOWHERE = tunnels.Place("", "", 0)
_WHAT = {TUNNELS: "tunnel", ENDPOINTS: "endpoint"}

Definition = tuple[Literal["AgentTunnel", "AgentEndpoint"], Document]
"""The collection of an endpoint or a tunnel, and the settings with which it is opened."""


class Agent:
    """One emulated agent.

    configs  its configuration files, read at each start; while one of them does not exist, the agent is not ready
    id       of an agent in a process of its own
    """

    def __init__(self, objects: Objects, configs: Sequence[Path] = (), id: str = "") -> None:
        self.id = id
        self._objects = objects
        self._database = objects.database
        self._configs = configs
        self._token: str | None = None
        self._metadata = ""
        self._version = VERSION
        self._interrupted: list[Definition] = []  # what was open when the connection was lost
        self.is_ready = False
        self.captured = CapturedRequests()
        objects.run_commands.append(self.run_command)

    # --- life cycle ---------------------------------------------------------------------------------------------------

    def start(self, authtoken: str | None = None, version: str | None = None) -> None:
        """Starts or restarts the agent, and closes whatever runs. None keeps the present token, "" removes it.
        `version` is that of its program; None: the default.

        Raises AgentError for an unknown token and for an invalid configuration file; the agent is then not ready. Also
        raises AgentError if some configured tunnels or endpoints cannot be opened, after all others were opened.
        """
        self._stop()
        self._version = version or VERSION
        if not all(path.exists() for path in self._configs):
            return
        configured = config_files.read(self._configs)
        token = configured.options.get("authtoken")
        self._token = authtoken or (str(token) if token else None if authtoken == "" else self._token)
        self._metadata = str(configured.options.get("metadata") or "")
        self._connect(list_definitions(configured), configured.sources)

    def start_as(self, token: str | None, version: str, metadata: str, definitions: Sequence[Definition]) -> None:
        """As `start`, with what another process has read from configuration files."""
        self._token, self._version, self._metadata = token, version, metadata
        self._connect(definitions, {})

    def _connect(self, definitions: Sequence[Definition], sources: Mapping[str, str]) -> None:
        with self._database.transaction():
            self._session()
        self.is_ready = True
        errors = [*self._open_all(definitions, sources)]
        if errors:
            raise tunnels.settings_error("\n".join(errors))

    def _open_all(self, definitions: Sequence[Definition], sources: Mapping[str, str]) -> Iterator[str]:
        """Opens tunnels and endpoints. Yields what cannot be opened, and why. `sources`: see `Configuration`."""
        for collection, settings in definitions:
            try:
                self.open(settings) if collection == TUNNELS else self.open_endpoint(settings)
            except tunnels.AgentError as failed:
                name = settings["name"]
                why = f"cannot open the {_WHAT[collection]} {name!r}: {' '.join(str(failed).split())}"
                yield f"{sources[name]}: {why}" if name in sources else why

    def disconnect(self) -> None:
        """Interrupts the connection: the session and whatever runs end. The API answers, and opens nothing."""
        if self.is_ready:
            self._interrupted = self.list_definitions()
        self.is_ready = False
        self.forget()

    def reconnect(self) -> None:
        """Ends an interruption: opens what was open before. Raises AgentError as `start` does."""
        if not self.is_ready:
            self._connect(self._interrupted, {})

    def _stop(self) -> None:
        """Ends the program of the agent: what it had open is not opened again."""
        self.disconnect()
        self._interrupted = []

    def end(self) -> None:
        """Stops the agent for good."""
        self._stop()
        if self.run_command in self._objects.run_commands:
            self._objects.run_commands.remove(self.run_command)

    def forget(self) -> None:
        """Deletes everything that runs, and the sessions of the agent, including those of an earlier process."""
        self.captured.clear()
        with self._database.transaction():
            for collection in (TUNNELS, ENDPOINTS):
                for running in self._database.page(collection, self.id):
                    self._end(running)
            for session in self._sessions():
                self._database.delete(session)
                self._objects.events.record(events.SESSION_STOP, self._describe_session(session))

    def has_session(self, session: Stored) -> bool:
        return session.id in [found.id for found in self._sessions()]

    def run_command(self, session: Stored, command: str) -> bool:
        """Executes a command of the management API (stop, restart, update) if the session is this agent's."""
        if not self.has_session(session):
            return False
        if command == "stop":
            self._stop()
        elif command == "restart":
            with suppress(tunnels.AgentError):  # the agent is then not ready
                self.start()
        return True

    def describe(self) -> Document:
        """The status of the agent and of its session."""
        return describe_agent(self._version, is_online=self.is_ready)

    # --- what runs ----------------------------------------------------------------------------------------------------

    def list_running(self, collection: str) -> list[Document]:
        """What was started as `TUNNELS` or `ENDPOINTS`, as the agent's API returns it, oldest first."""
        return [stored.body["status"] for stored in reversed(self._database.page(collection, self.id))]

    def list_definitions(self) -> list[Definition]:
        """What runs, as settings with which the same can be opened again."""
        return [
            (collection, stored.body["definition"])
            for collection in (TUNNELS, ENDPOINTS)
            for stored in reversed(self._database.page(collection, self.id))
        ]

    def list_tunnels(self) -> list[Document]:
        return self.list_running(TUNNELS)

    def find(self, collection: str, name: str) -> Document:
        return dict(self._find(collection, name).body["status"])

    def close(self, collection: str, name: str) -> None:
        with self._database.transaction():
            self._end(self._find(collection, name))

    def open(self, settings: Mapping[str, Any]) -> Document:
        """Opens a tunnel with the settings of the older API, and another for a second scheme. Returns the first."""
        self._require_session()
        with self._database.transaction():
            parsed = tunnel_settings.parse_settings(settings)
            session = self._session()
            if parsed.labels:
                self._permit_labels(parsed.labels)
                return self._open_tunnel(_NOWHERE, parsed, session, settings)
            first = parsed.schemes[0] if parsed.schemes else parsed.proto
            place = self._place(first, parsed.given)
            self._permit(place, is_named=tunnels.names_place(parsed.given))
            if len(parsed.schemes) > 1:
                settings = {**settings, "schemes": [first]}
            status = self._open_tunnel(place, parsed, session, settings)
            for scheme in parsed.schemes[1:]:
                second = tunnels.Place(scheme, place.host, derive.DEFAULT_PORTS[scheme])
                twin = replace(parsed, name=f"{parsed.name} ({scheme})")
                self._open_tunnel(second, twin, session, {**settings, "name": twin.name, "schemes": [scheme]})
            return status

    def _open_tunnel(
        self,
        place: tunnels.Place,
        parsed: tunnel_settings.Settings,
        session: Stored,
        definition: Mapping[str, Any],
    ) -> Document:
        name = parsed.name
        self._require_free(name)
        variants, proto = self._objects.variants, parsed.proto or "http"
        upstream = tunnels.upstream(proto, parsed.addr)
        inspect = tunnels.inspects(proto, parsed.given, tls=variants.agent_tls_inspected)
        short = variants.agent_examples and "://localhost" in upstream
        answered = upstream.rpartition("://")[2] if short else upstream
        status = tunnels.build_status(name, place, answered, inspect=inspect)
        if not variants.agent_examples:
            status["ID"] = secrets.token_hex(16)
        opened = tunnels.Opened(
            name,
            place,
            upstream,
            metadata=parsed.metadata,
            description=parsed.description,
            traffic_policy=parsed.traffic_policy,
            labels=parsed.labels,
        )
        self._run(TUNNELS, opened, session, status, dict(definition))
        return {**status, "name": "", "uri": "/api/tunnels/"} if variants.agent_examples else status

    def open_endpoint(self, definition: Mapping[str, Any]) -> Document:
        """Opens an endpoint."""
        self._require_session()
        with self._database.transaction():
            parsed = endpoints.parse_definition(definition)
            self._require_free(parsed.name)
            return self._open_endpoint(parsed)

    def put_endpoint(self, name: str, definition: Mapping[str, Any]) -> tuple[Document, bool]:
        """Updates an endpoint in place, or opens it: the endpoint, and whether it is new."""
        self._require_session()
        with self._database.transaction():
            found = self._database.find(ENDPOINTS, name, self.id)
            lasting = self._find_lasting(found) if found is not None else {}
            parsed = endpoints.parse_definition({**lasting, "name": name, **definition})
            if parsed.name != name:
                raise tunnels.settings_error(f"the name {parsed.name!r} is not the one in the path, {name!r}")
            if found is None:
                self._require_free(name)
                return self._open_endpoint(parsed), True
            self._update_endpoint(found, parsed)
            return self.find(ENDPOINTS, name), False

    def _find_lasting(self, running: Stored) -> Document:
        """What a PUT does not change if its body omits it."""
        definition = running.body["definition"]
        lasting = {key: definition[key] for key in ("bindings", "pooling_enabled")}
        others = definition if self._objects.variants.agent_put_keeps else {}
        return {**others, **lasting, "url": running.body["status"]["url"]}

    def _open_endpoint(self, parsed: endpoints.Definition) -> Document:
        session = self._session()
        place = self._endpoint_place(parsed)
        self._permit(place, is_named=parsed.is_named)
        status = self._show_endpoint(parsed, place)
        self._run(ENDPOINTS, parsed.open_at(place), session, status, parsed.to_json())
        return status

    def _update_endpoint(self, running: Stored, parsed: endpoints.Definition) -> None:
        stored = self._database.find(_ENDPOINT, running.body["endpoint"])
        assert stored is not None
        raw = stored.body["_raw"]
        place = tunnels.Place(raw["scheme"], raw["host"], raw["port"])
        endpoints.check_unchanged(parsed, place, raw["bindings"], pooling=raw["pooling_enabled"])
        moment = certificates.stamp(self._database.now())
        described = tunnels.describe_endpoint(parsed.open_at(place), moment)
        self._database.replace(stored, {"_raw": {**raw, **described, "created_at": raw["created_at"]}})
        status = self._show_endpoint(parsed, place)
        self._database.replace(running, {**running.body, "status": status, "definition": parsed.to_json()})

    def _show_endpoint(self, parsed: endpoints.Definition, place: tunnels.Place) -> Document:
        variants = self._objects.variants
        status = endpoints.build_status(parsed, place, tls_inspected=variants.agent_tls_inspected)
        return endpoints.shorten(status) if variants.agent_examples else status

    def _require_session(self) -> None:
        if not self.is_ready:
            raise tunnels.not_connected()

    def _require_free(self, name: str) -> None:
        for collection, what in _WHAT.items():
            if self._database.find(collection, name, self.id) is not None:
                raise tunnels.settings_error(f"{what} {name!r} already exists")

    def _find(self, collection: str, name: str) -> Stored:
        found = self._database.find(collection, name, self.id)
        if found is None:
            what = _WHAT[collection]
            raise tunnels.AgentError(100, 404, f"{what} not found", f"there is no {what} {name!r}")
        return found

    def _end(self, running: Stored) -> None:
        for collection, key in ((_ENDPOINT, "endpoint"), (_TUNNEL, "tunnel")):
            found = self._database.find(collection, running.body[key])
            if found is not None:
                self._database.delete(found)
        self._database.delete(running)

    def _run(
        self, collection: str, opened: tunnels.Opened, session: Stored, status: Document, definition: Document
    ) -> None:
        """Stores what runs, with the objects of the management API. Raises AgentError if the address is taken."""
        moment, tunnel_id = certificates.stamp(self._database.now()), self._database.new_id("tn_")
        endpoint_id = "" if opened.labels else self._run_endpoint(opened, session, tunnel_id, moment)
        tunnel = {
            **tunnels.describe_tunnel(opened, moment),
            "tunnel_session": ref(session.id),
            "endpoint": ref(endpoint_id) if endpoint_id else None,
        }
        self._database.insert(_TUNNEL, tunnel_id, {"_raw": tunnel})
        running = {"status": status, "endpoint": endpoint_id, "tunnel": tunnel_id, "definition": definition}
        self._database.insert(collection, opened.name, running, self.id)

    def _run_endpoint(self, opened: tunnels.Opened, session: Stored, tunnel_id: str, moment: str) -> str:
        """Stores the endpoint of what runs, and returns its id. Raises AgentError if the address is taken."""
        place, endpoint_id = opened.place, self._database.new_id("ep_")
        self._check_free(place, pooling=opened.pooling_enabled)
        domain, address = self._objects.world.domain_of(place.host), self._objects.world.address_of(place.hostport)
        endpoint = {
            **tunnels.describe_endpoint(opened, moment),
            "domain": ref(domain.id) if domain else None,
            "tcp_addr": ref(address.id) if address else None,
            "tunnel": ref(tunnel_id),
            "tunnel_session": ref(session.id),
            "principal": session.body["_principal"],
        }
        stored = self._database.insert(_ENDPOINT, endpoint_id, {"_raw": endpoint})
        name = ("pool", f"{place.url} {endpoint_id}") if opened.pooling_enabled else ("url", place.url)
        self._database.take(stored, [name])
        return endpoint_id

    def _check_free(self, place: tunnels.Place, *, pooling: bool) -> None:
        """Raises AgentError if something serves the address, unless it and the new endpoint use pooling."""
        named = self._database.find_by_name
        pooled = not pooling and self._database.has_name_of_other("pool", f"{place.url} ", "")
        if pooled or named("url", place.url) or named("hostport", place.hostport):
            raise tunnels.start_error(334, f"The endpoint {place.url!r} is already online.")

    # --- authentication and permissions -------------------------------------------------------------------------------

    def _credential(self) -> Stored | None:
        """The credential of the agent's token; None without a token."""
        if self._token is None:
            return None
        digest = hashlib.sha256(self._token.encode()).hexdigest()
        for stored in self._database.page("TunnelCredential"):
            if secrets.compare_digest(stored.body.get("_token_sha256", ""), digest) and self._objects.world.is_active(
                stored.body["owner_id"]
            ):
                return stored
        raise tunnels.start_error(107, "The authtoken is properly formed, but it is invalid.")

    def _permit(self, place: tunnels.Place, *, is_named: bool) -> None:
        credential = self._credential()
        if credential is not None and not tunnels.allows(credential.body["acl"], place, is_named=is_named):
            raise tunnels.start_error(308, f"The ACL of {credential.id} does not permit binding {place.host}.")

    def _permit_labels(self, labels: Mapping[str, str]) -> None:
        credential = self._credential()
        if credential is not None and not tunnels.allows_labels(credential.body["acl"], labels):
            raise tunnels.start_error(308, f"The ACL of {credential.id} does not permit binding the labels.")

    def _place(self, scheme: str, settings: Mapping[str, Any]) -> tunnels.Place:
        """The public address of a tunnel: reserved, below a reserved wildcard domain, or assigned by the platform."""
        if settings.get("url"):
            return self._url_place(endpoints.parse_url(settings["url"]), is_public=True)
        if scheme == "tcp":
            return self._address(settings.get("remote_addr"))
        subdomain = settings.get("subdomain")
        host = settings.get("domain") or settings.get("hostname") or (subdomain and f"{subdomain}.{PLATFORM_DOMAIN}")
        if not host:
            return self._random_place(scheme)
        host = vocabulary.host(str(host))
        if not vocabulary.is_hostport(f"{host.removeprefix('*.')}:443"):
            raise tunnels.settings_error(f"{host!r} is not a host name")
        self._require_reserved(host)
        return tunnels.Place(scheme, host, derive.DEFAULT_PORTS[scheme])

    def _endpoint_place(self, parsed: endpoints.Definition) -> tunnels.Place:
        """The address of an endpoint: the one in its URL, which is reserved if it is public, or assigned."""
        return self._url_place(parsed.url, is_public="public" in parsed.bindings)

    def _url_place(self, url: endpoints.Url, *, is_public: bool) -> tunnels.Place:
        if not url.host:
            return self._random_place(url.scheme)
        if is_public and url.scheme == "tcp":
            return self._address(f"{url.host}:{url.port}")
        if is_public:
            self._require_reserved(url.host)
        return tunnels.Place(url.scheme, url.host, url.port)

    def _random_place(self, scheme: str) -> tunnels.Place:
        if scheme == "tcp":
            return self._address(None)
        return tunnels.Place(scheme, f"{secrets.token_hex(6)}.{PLATFORM_DOMAIN}", derive.DEFAULT_PORTS[scheme])

    def _require_reserved(self, host: str) -> None:
        if self._objects.world.domain_of(host) is None:
            raise tunnels.start_error(319, f"You must reserve the hostname {host!r} before it can be used.")

    def _address(self, remote: Json) -> tunnels.Place:
        if remote is None:
            number = self._database.count("agent addresses") % 10000
            return tunnels.Place("tcp", f"0.tcp.{PLATFORM_DOMAIN}", 10000 + number)
        host, _, port = str(remote).strip().lower().rpartition(":")
        if not port.isdecimal() or self._objects.world.address_of(f"{host}:{int(port)}") is None:
            raise tunnels.start_error(307, f"You must reserve the address {remote!r} before it can be used.")
        return tunnels.Place("tcp", host, int(port))

    def _session(self) -> Stored:
        """The session of the agent, which is created on first use. Raises AgentError if the token is not valid."""
        for found in self._sessions():
            self._credential()
            return found
        credential = self._credential()
        moment = certificates.stamp(self._database.now())
        owner = credential.body["owner_id"] if credential is not None else self._objects.world.user()
        raw = {
            "agent_version": self._version,
            "credential": ref(credential.id) if credential is not None else None,
            "ip": "127.0.0.1",
            "metadata": self._metadata,
            "os": "linux",
            "region": "us",
            "started_at": moment,
            "transport": "ngrok/2",
        }
        identity = self._database.new_id("ts_")
        body = {"_raw": raw, "_principal": ref(owner), "_agent": self.id}
        session = self._database.insert(_SESSION, identity, body)
        self._objects.events.record(events.SESSION_START, self._describe_session(session))
        return session

    def _sessions(self) -> list[Stored]:
        """The sessions of this agent, without those stored with `/_sandbox/objects`."""
        return [stored for stored in self._database.page(_SESSION) if stored.body.get("_agent") == self.id]

    def _describe_session(self, session: Stored) -> Document:
        raw = session.body["_raw"]
        return {"id": session.id, **{name: value for name, value in raw.items() if name != "credential"}}


def describe_agent(version: str, *, is_online: bool) -> Document:
    """The status of an agent and of its session."""
    legs: list[Json] = [{"region": "us", "latency": "10ms"}] if is_online else []
    status = "online" if is_online else "connecting"
    return {"status": status, "agent_version": version, "session": {"legs": legs}, "uri": "/api/status"}


def list_definitions(configured: config_files.Configuration) -> list[Definition]:
    """What the agent opens when it starts."""
    opened: list[Definition] = [(TUNNELS, {**tunnel, "name": name}) for name, tunnel in configured.tunnels.items()]
    return [*opened, *((ENDPOINTS, endpoint) for endpoint in configured.endpoints)]


def forget_earlier(objects: Objects) -> None:
    """Deletes what agents of an earlier process of the sandbox had open: it ended with that process."""
    sessions = [stored.body for stored in objects.database.page(_SESSION)]
    for id in {"", *(str(body["_agent"]) for body in sessions if "_agent" in body)}:
        Agent(objects, id=id).end()
