"""Asks the name servers that are responsible for names about their DNS records, by UDP and TCP. Changes nothing.

The servers of a zone are found by its delegation, from the root servers down, without caches. Needs dnspython, which
the extra `dns` installs.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from reconciler.model.dns import Answer, Evidence, Reply, list_parents

if TYPE_CHECKING:
    import dns.message
    import dns.rrset

PORT: Final = 53
_SECONDS: Final = 3.0
_TRIES: Final = 2
_CONCURRENCY: Final = 24  # questions at a time
_MOST_SERVERS: Final = 13  # of one zone
_AT_ONCE: Final = 4  # servers of one zone that are asked for a delegation at the same time
_FEW: Final = 3  # reasons of a message
_MOST_STEPS: Final = 8  # servers whose address has to be found in order to find the address of another one
_ROOTS: Final = (
    *("198.41.0.4", "170.247.170.2", "192.33.4.12", "199.7.91.13", "192.203.230.10", "192.5.5.241", "192.112.36.4"),
    *("198.97.190.53", "192.36.148.17", "192.58.128.30", "193.0.14.129", "199.7.83.42", "202.12.27.33"),
)


class MissingLibrary(Exception):
    """dnspython is not installed."""


class Server(Struct, frozen=True):
    """A name server: its name, and the addresses at which it can be asked."""

    name: str
    addresses: tuple[str, ...]
    port: int = PORT


class _Unfound(Exception):
    """The servers of a zone cannot be found."""


class Settings(Struct, frozen=True):
    """Where and how name servers are asked.

    only     the server that is asked instead of those that are responsible
    roots    addresses of the root servers
    port     of all servers that are found
    seconds  until a server counts as unreachable
    """

    only: Server | None = None
    roots: tuple[str, ...] = _ROOTS
    port: int = PORT
    seconds: float = _SECONDS


def parse_server(text: str) -> Server:
    """The server at `HOST`, `HOST:PORT` or `[ADDRESS]:PORT`. Raises ValueError."""
    host, colon, port = text.rpartition(":")
    if not colon or text.endswith("]") or (":" in host and not host.startswith("[")):
        host, port = text, str(PORT)
    host = host.removeprefix("[").removesuffix("]")
    if not host or not port.isdecimal() or not 0 < int(port) < 65536:
        raise ValueError(f"{text!r} is no name server; write HOST or HOST:PORT, such as 192.0.2.53:53")
    return Server(text, (host,), int(port))


async def observe(questions: Iterable[tuple[str, str]], settings: Settings | None = None) -> Evidence:
    """Asks each server of the zone of each name for records of a type. Raises MissingLibrary.

    What cannot be found out is part of the evidence. An NS record is asked of the zone above its name.
    """
    try:
        import dns.asyncquery  # noqa: F401 - the extra may be missing
    except ImportError:
        raise MissingLibrary("dnspython is not installed; install the extra `reconciler[dns]`") from None
    walk = _Walk(settings or Settings())
    wanted = list(dict.fromkeys(questions))
    found = await asyncio.gather(*(walk.ask_servers(name, type) for name, type in wanted))
    answers, unreachable = {}, {}
    for (name, type), result in zip(wanted, found, strict=True):
        if isinstance(result, str):
            unreachable[name] = result
        else:
            answers[name, type] = result
    return Evidence(answers, unreachable)


class _Walk:
    """The zones that were found so far."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._gate = asyncio.Semaphore(_CONCURRENCY)
        self._zones: dict[str, asyncio.Task[Sequence[Server]]] = {}

    async def ask_servers(self, name: str, type: str) -> Sequence[Answer] | str:
        """The answer of each server, or why none was asked."""
        try:
            servers = await self._find_responsible(name, type)
        except _Unfound as why:
            return str(why)
        return await asyncio.gather(*(self._ask(server, name, type) for server in servers))

    async def _find_responsible(self, name: str, type: str) -> Sequence[Server]:
        if self._settings.only is not None:
            return await self._locate(self._settings.only)
        # Nothing is delegated at a wildcard, and the zone above says what is delegated.
        place = next(list_parents(name), "") if type == "NS" or name.startswith("*.") else name
        return await self._find_zone(place)

    async def _locate(self, server: Server) -> Sequence[Server]:
        """The named server with its address, from the machine's resolver."""
        loop, (host,) = asyncio.get_running_loop(), server.addresses
        try:
            found = await loop.getaddrinfo(host, server.port)
        except OSError as error:
            raise _Unfound(f"{server.name}: {error.strerror or error}") from None
        addresses = tuple(dict.fromkeys(str(place[0]) for *_, place in found))
        return [Server(server.name, addresses, server.port)]

    # --- delegation -------------------------------------------------------------------------------------------------

    async def _find_zone(self, name: str, steps: int = 0) -> Sequence[Server]:
        """The servers of the zone that has the name. Raises _Unfound."""
        if not name:
            return [Server("the root", (address,), self._settings.port) for address in self._settings.roots]
        if steps > _MOST_STEPS:
            raise _Unfound(f"the servers of {name} depend on each other")
        if steps:  # not shared: two that wait for each other would wait for ever
            return await self._descend(name, steps)
        if name not in self._zones:
            self._zones[name] = asyncio.ensure_future(self._descend(name, steps))
        return await self._zones[name]

    async def _descend(self, name: str, steps: int) -> Sequence[Server]:
        """The servers to which those of the zone above delegate the name, or those themselves."""
        above = await self._find_zone(next(list_parents(name), ""), steps)
        why: list[str] = []
        for start in range(0, len(above), _AT_ONCE):
            servers = above[start : start + _AT_ONCE]
            responses = await asyncio.gather(*(self._exchange(server, name, "NS") for server in servers))
            for server, response in zip(servers, responses, strict=True):
                if isinstance(response, str):
                    why.append(f"{server.name}: {response}")
                elif (cut := _find_cut(response, name)) is not None:
                    return await self._find_addresses(cut, response, name, steps)
                elif _is_authoritative(response):
                    return above
                else:
                    why.append(f"{server.name}: {_say_lame(response, name)}")
        raise _Unfound("; ".join(dict.fromkeys(why[:_FEW])))

    async def _find_addresses(
        self, cut: dns.rrset.RRset, response: dns.message.Message, zone: str, steps: int
    ) -> Sequence[Server]:
        names = sorted(_text(item.target) for item in cut)[:_MOST_SERVERS]
        glue = {name: tuple(_list_addresses(response, name)) for name in names}
        servers, why = [], []
        for name in names:
            try:
                addresses = glue[name] or await self._resolve(name, zone, steps + 1)
                servers.append(Server(name, addresses, self._settings.port))
            except _Unfound as error:
                why.append(f"{name}: {error}")
                servers.append(Server(name, (), self._settings.port))  # it cannot be reached
        if all(not server.addresses for server in servers):
            raise _Unfound(f"the servers of {zone} have no address: {'; '.join(why[:_FEW])}")
        return servers

    async def _resolve(self, name: str, zone: str, steps: int) -> tuple[str, ...]:
        """The addresses of a name server that the zone above does not tell. Raises _Unfound."""
        if name == zone or name.endswith(f".{zone}"):
            raise _Unfound(f"the zone above does not tell the address of {name}")
        for server in await self._find_zone(name, steps):
            found: list[str] = []
            for type in ("A", "AAAA"):
                response = await self._exchange(server, name, type)
                if not isinstance(response, str):
                    found += _list_addresses(response, name)
            if found:
                return tuple(found)
        raise _Unfound(f"no address of {name} was found")

    # --- questions --------------------------------------------------------------------------------------------------

    async def _ask(self, server: Server, name: str, type: str) -> Answer:
        response = await self._exchange(server, name, type)
        if isinstance(response, str):
            return Answer(server.name, Reply.UNKNOWN, why=response)
        return _read_answer(server.name, response, name, type)

    async def _exchange(self, server: Server, name: str, type: str) -> dns.message.Message | str:
        """The response of a server, or why there is none."""
        why = "it has no address"
        for address in server.addresses:
            for _ in range(_TRIES):
                try:
                    return await self._send(address, server.port, name, type)
                except _NoResponse as failure:
                    why = str(failure)
        return why

    async def _send(self, address: str, port: int, name: str, type: str) -> dns.message.Message:
        import dns.asyncquery
        import dns.exception
        import dns.flags
        import dns.message

        query = dns.message.make_query(f"{name}.", type, flags=0, use_edns=0, payload=1232)
        async with self._gate:
            try:
                response, _ = await dns.asyncquery.udp_with_fallback(
                    query, address, self._settings.seconds, port, ignore_unexpected=True
                )
            except dns.exception.Timeout:
                raise _NoResponse(f"no answer within {self._settings.seconds:g} s") from None
            except OSError as error:
                raise _NoResponse(error.strerror or str(error)) from None
            except (dns.exception.DNSException, ValueError, EOFError) as error:
                raise _NoResponse(f"the answer cannot be read: {error}") from None
        return response


class _NoResponse(Exception):
    pass


# --- responses --------------------------------------------------------------------------------------------------------


def _text(name: object) -> str:
    """A name in lower case and without the final dot. Bytes that are no text are escaped."""
    return str(name).removesuffix(".").lower()


def _is_authoritative(response: dns.message.Message) -> bool:
    import dns.flags
    import dns.rcode

    return bool(response.flags & dns.flags.AA) and response.rcode() in (dns.rcode.NOERROR, dns.rcode.NXDOMAIN)


def _say_lame(response: dns.message.Message, name: str) -> str:
    import dns.rcode

    code = response.rcode()
    return (
        f"it is not responsible for {name}" if code == dns.rcode.NOERROR else f"it answered {dns.rcode.to_text(code)}"
    )


def _find_records(section: Iterable[dns.rrset.RRset], name: str, type: str) -> dns.rrset.RRset | None:
    import dns.rdatatype

    wanted = dns.rdatatype.from_text(type)
    return next((found for found in section if found.rdtype == wanted and _text(found.name) == name), None)


def _find_cut(response: dns.message.Message, name: str) -> dns.rrset.RRset | None:
    """The NS records that delegate the name, or with which its own zone begins."""
    import dns.rcode

    if response.rcode() != dns.rcode.NOERROR:
        return None
    return _find_records(response.answer, name, "NS") or _find_records(response.authority, name, "NS")


def _list_addresses(response: dns.message.Message, name: str) -> Iterator[str]:
    for type in ("A", "AAAA"):
        found = _find_records((*response.answer, *response.additional), name, type)
        yield from (item.to_text() for item in found or ())


def _read_answer(server: str, response: dns.message.Message, name: str, type: str) -> Answer:
    found = _find_records(response.answer, name, type)
    if found is None and type == "NS":
        found = _find_cut(response, name)  # a delegation is no answer of its own
    elif not _is_authoritative(response):
        return Answer(server, Reply.UNKNOWN, why=_say_lame(response, name))
    if found is not None:
        return Answer(server, Reply.FOUND, tuple(sorted(_read_value(item.to_text(), type) for item in found)))
    if not _is_authoritative(response):
        return Answer(server, Reply.UNKNOWN, why=_say_lame(response, name))
    return Answer(server, Reply.ABSENT)


def _read_value(text: str, type: str) -> str:
    return _text(text) if type in ("CNAME", "NS") else text
