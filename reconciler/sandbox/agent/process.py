"""The emulated agent: authenticates with an authtoken, opens and closes tunnels. Its HTTP API is in `api`.

Running tunnels are stored in the database, so that the management API lists them: an ephemeral endpoint, a tunnel and a
tunnel session, as objects of the collections `CloudEndpoint`, `Tunnel` and `TunnelSession`. They are deleted when the
agent ends.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from reconciler.model.value import Json
from reconciler.sandbox.agent import tunnels
from reconciler.sandbox.base import certificates, derive, vocabulary
from reconciler.sandbox.base.database import Document, Stored
from reconciler.sandbox.operations import events
from reconciler.sandbox.operations.objects import PLATFORM_DOMAIN, Objects
from reconciler.sandbox.wire import parsing
from reconciler.sandbox.wire.responses import ref

_RUNNING, _ENDPOINT, _TUNNEL, _SESSION = "AgentTunnel", "CloudEndpoint", "Tunnel", "TunnelSession"
_VERSION = "3.30.0"


class Agent:
    """One emulated agent.

    `configs` are its configuration files, read at each start. While one of them does not exist, the agent is not ready.
    """

    def __init__(self, objects: Objects, configs: Sequence[Path] = ()) -> None:
        self._objects = objects
        self._database = objects.database
        self._configs = configs
        self._token: str | None = None
        self.is_ready = False
        objects.run_command = self.run_command

    # --- life cycle ---------------------------------------------------------------------------------------------------

    def start(self, authtoken: str | None = None) -> None:
        """Starts or restarts the agent, and closes all tunnels. None keeps the present token, "" removes it.

        Raises AgentError for an unknown token and for an invalid configuration file; the agent is then not ready. Also
        raises AgentError if some configured tunnels cannot be opened, after all others were opened.
        """
        self.is_ready = False
        self.forget()
        if not all(path.exists() for path in self._configs):
            return
        files = {path: _read_config(path) for path in self._configs}
        configured = _merge_configs(files.values())
        token = configured.get("authtoken")
        self._token = authtoken or (str(token) if token else None if authtoken == "" else self._token)
        with self._database.transaction():
            self._session()
        self.is_ready = True
        errors = []
        for name, settings in configured["tunnels"].items():
            try:
                self.open({**settings, "name": name})
            except tunnels.AgentError as failed:
                where = " and ".join(path.name for path, read in files.items() if name in (read.get("tunnels") or {}))
                errors.append(f"{where}: cannot open the tunnel {name!r}: {' '.join(str(failed).split())}")
        if errors:
            raise tunnels.settings_error("\n".join(errors))

    def forget(self) -> None:
        """Deletes all tunnels and sessions of the agent, including those of an earlier process."""
        with self._database.transaction():
            for running in self._database.page(_RUNNING):
                self._end(running)
            for session in self._sessions():
                self._database.delete(session)
                self._objects.events.record(events.SESSION_STOP, self._describe_session(session))

    def run_command(self, session: Stored, command: str) -> bool:
        """Executes a command of the management API (stop, restart, update) if the session is this agent's."""
        if session.id not in [session.id for session in self._sessions()]:
            return False
        if command == "stop":
            self.is_ready = False
            self.forget()
        elif command == "restart":
            with suppress(tunnels.AgentError):  # the agent is then not ready
                self.start()
        return True

    # --- tunnels ------------------------------------------------------------------------------------------------------

    def list_tunnels(self) -> list[Document]:
        """The running tunnels, as the agent's API returns them, oldest first."""
        return [stored.body["shown"] for stored in reversed(self._database.page(_RUNNING))]

    def find(self, name: str) -> Stored:
        found = self._database.find(_RUNNING, name)
        if found is None:
            raise tunnels.AgentError(100, 404, "tunnel not found", f"there is no tunnel {name!r}")
        return found

    def open(self, settings: Mapping[str, Any]) -> Document:
        if not self.is_ready:
            raise tunnels.AgentError(
                104, 503, "the agent is not ready to start tunnels", "a tunnel session has not yet been established"
            )
        with self._database.transaction():
            name, proto, addr = tunnels.parse_settings(settings)
            if self._database.find(_RUNNING, name) is not None:
                raise tunnels.settings_error(f"tunnel {name!r} already exists")
            session = self._session()
            place = self._place(proto, settings)
            self._permit(place, settings)
            return self._run(name, proto, place, tunnels.upstream(proto, addr), settings, session)

    def close(self, name: str) -> None:
        with self._database.transaction():
            self._end(self.find(name))

    def _end(self, running: Stored) -> None:
        for collection, key in ((_ENDPOINT, "endpoint"), (_TUNNEL, "tunnel")):
            found = self._database.find(collection, running.body[key])
            if found is not None:
                self._database.delete(found)
        self._database.delete(running)

    def _run(
        self, name: str, proto: str, place: tunnels.Place, upstream: str, settings: Mapping[str, Any], session: Stored
    ) -> Document:
        named, pooled = self._database.find_by_name, self._database.has_name_of_other("pool", f"{place.url} ", "")
        if pooled or named("url", place.url) or named("hostport", place.hostport):
            raise tunnels.start_error(334, f"The endpoint {place.url!r} is already online.")
        moment, metadata = certificates.stamp(derive.now()), str(settings.get("metadata") or "")
        endpoint_id, tunnel_id = self._database.new_id("ep_"), self._database.new_id("tn_")
        domain, address = self._objects.world.domain_of(place.host), self._objects.world.address_of(place.hostport)
        endpoint = {
            **tunnels.build_endpoint(name, place, upstream, metadata, moment),
            "domain": ref(domain.id) if domain else None,
            "tcp_addr": ref(address.id) if address else None,
            "tunnel": ref(tunnel_id),
            "tunnel_session": ref(session.id),
            "principal": session.body["_principal"],
        }
        tunnel = {
            **tunnels.build_tunnel(place, upstream, metadata, moment),
            "tunnel_session": ref(session.id),
            "endpoint": ref(endpoint_id),
        }
        kept = self._database.insert(_ENDPOINT, endpoint_id, {"_raw": endpoint})
        self._database.take(kept, [("url", place.url)])
        self._database.insert(_TUNNEL, tunnel_id, {"_raw": tunnel})
        variants = self._objects.variants
        inspect = tunnels.inspects(proto, settings, tls=variants.agent_tls_inspected)
        answered = upstream.rpartition("://")[2] if variants.agent_examples and "://localhost" in upstream else upstream
        status = tunnels.build_status(name, place, answered, inspect=inspect)
        self._database.insert(_RUNNING, name, {"shown": status, "endpoint": endpoint_id, "tunnel": tunnel_id})
        return {**status, "name": "", "uri": "/api/tunnels/"} if variants.agent_examples else status

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

    def _permit(self, place: tunnels.Place, settings: Mapping[str, Any]) -> None:
        credential = self._credential()
        if credential is not None and not tunnels.allows(credential.body["acl"], settings, place):
            raise tunnels.start_error(308, f"The ACL of {credential.id} does not permit binding {place.host}.")

    def _place(self, proto: str, settings: Mapping[str, Any]) -> tunnels.Place:
        """The public address of a tunnel: reserved, below a reserved wildcard domain, or assigned by the platform."""
        if proto == "tcp":
            return self._address(settings.get("remote_addr"))
        scheme = "https" if proto == "http" else proto
        subdomain = settings.get("subdomain")
        host = settings.get("domain") or settings.get("hostname") or (subdomain and f"{subdomain}.{PLATFORM_DOMAIN}")
        if not host:
            return tunnels.Place(scheme, f"{secrets.token_hex(6)}.{PLATFORM_DOMAIN}", 443)
        host = str(host).strip().lower().rstrip(".")
        if not vocabulary.is_hostport(f"{host.removeprefix('*.')}:443"):
            raise tunnels.settings_error(f"{host!r} is not a host name")
        if self._objects.world.domain_of(host) is None:
            raise tunnels.start_error(319, f"You must reserve the hostname {host!r} before it can be used.")
        return tunnels.Place(scheme, host, 443)

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
        moment = certificates.stamp(derive.now())
        owner = credential.body["owner_id"] if credential is not None else self._objects.world.user()
        raw = {
            "agent_version": _VERSION,
            "credential": ref(credential.id) if credential is not None else None,
            "ip": "127.0.0.1",
            "metadata": "",
            "os": "linux",
            "region": "us",
            "started_at": moment,
            "transport": "ngrok/2",
        }
        identity = self._database.new_id("ts_")
        session = self._database.insert(_SESSION, identity, {"_raw": raw, "_principal": ref(owner)})
        self._objects.events.record(events.SESSION_START, self._describe_session(session))
        return session

    def _sessions(self) -> list[Stored]:
        """The sessions of this agent, without those stored with `/_sandbox/objects`."""
        return [stored for stored in self._database.page(_SESSION) if "_principal" in stored.body]

    def _describe_session(self, session: Stored) -> Document:
        raw = session.body["_raw"]
        return {"id": session.id, **{name: value for name, value in raw.items() if name != "credential"}}


def _merge_configs(files: Iterable[Document]) -> Document:
    """One configuration from several files: later values take precedence, for the keys of each tunnel too."""
    merged: Document = {}
    tunnels: dict[str, Document] = {}
    for file in files:
        merged |= file
        for name, settings in (file.get("tunnels") or {}).items():
            tunnels[name] = {**tunnels.get(name, {}), **settings}
    return {**merged, "tunnels": tunnels}


def _read_config(path: Path) -> Document:
    try:
        config = parsing.document(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise tunnels.settings_error(f"{path.name}: {error}") from error
    configured = config.get("tunnels") or {} if isinstance(config, dict) else None
    if not isinstance(configured, dict) or not all(isinstance(settings, dict) for settings in configured.values()):
        raise tunnels.settings_error(f"{path.name} is not an agent configuration")
    return dict(config)
