"""A name server as a process: answers for the zone files that it is started with, by UDP and TCP.

`python -m tests.harness.name_server ADDRESS PORT ORIGIN=FILE…`; prints one line when it listens. It answers as RFC 1034
says: referrals with glue, wildcards, aliases that it does not follow, and REFUSED for other zones. It reads the files
again for each question, so that a test can change them.

--mute         answers nothing
--lame         answers without the flag that it is responsible
--crowded      has a TXT record at every name, also beside an alias
--stingy       answers by UDP that the answer is too long
"""

from __future__ import annotations

import contextlib
import socket
import socketserver
import struct
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path

import dns.flags
import dns.message
import dns.name
import dns.node
import dns.rcode
import dns.rdataclass
import dns.rdatatype
import dns.rrset
import dns.zone

ROOT = Path(__file__).parents[2]


def _answer(query: dns.message.Message, zones: Mapping[dns.name.Name, Path]) -> dns.message.Message:
    response = dns.message.make_response(query)
    question = query.question[0]
    name = question.name.canonicalize()
    origin = max((origin for origin in zones if name.is_subdomain(origin)), key=len, default=None)
    if origin is None:
        response.set_rcode(dns.rcode.REFUSED)
        return response
    text = zones[origin].read_text(encoding="utf-8")
    zone = dns.zone.from_text(text, origin, relativize=False, check_origin=False, allow_include=True)
    cut = next((above for above in _list_above(name, origin) if _find(zone, above, dns.rdatatype.NS)), None)
    if cut is not None:
        _refer(response, zone, cut)
        return response
    response.flags |= dns.flags.AA
    source = name
    if zone.get_node(name) is None:
        exists = any(other.is_subdomain(name) for other in zone.nodes)
        wildcard = None if exists else _find_wildcard(zone, name, origin)
        if wildcard is None:
            if not exists:
                response.set_rcode(dns.rcode.NXDOMAIN)
            return response
        source = wildcard
    for type in dict.fromkeys((question.rdtype, dns.rdatatype.CNAME)):
        if (found := _find(zone, source, type)) is not None:
            response.answer.append(dns.rrset.from_rdata_list(question.name, found.ttl, list(found)))
            break
    return response


def _list_above(name: dns.name.Name, origin: dns.name.Name) -> Iterator[dns.name.Name]:
    """The names from below the apex down to the name itself: the highest delegation decides."""
    for depth in range(len(origin) + 1, len(name) + 1):
        yield name.split(depth)[1]


def _find_wildcard(zone: dns.zone.Zone, name: dns.name.Name, origin: dns.name.Name) -> dns.name.Name | None:
    """The wildcard below the closest name that exists."""
    above = name
    while above != origin:
        above = above.parent()
        wildcard = dns.name.Name(("*", *above.labels))
        if zone.get_node(wildcard) is not None:
            return wildcard
        if any(other.is_subdomain(above) for other in zone.nodes):
            return None
    return None


def _find(zone: dns.zone.Zone, name: dns.name.Name, type: dns.rdatatype.RdataType) -> dns.rdataset.Rdataset | None:
    node = zone.get_node(name)
    return None if node is None else node.get_rdataset(dns.rdataclass.IN, type)


def _refer(response: dns.message.Message, zone: dns.zone.Zone, cut: dns.name.Name) -> None:
    servers = _find(zone, cut, dns.rdatatype.NS)
    assert servers is not None
    response.authority.append(dns.rrset.from_rdata_list(cut, servers.ttl, list(servers)))
    for server in servers:
        if (glue := _find(zone, server.target, dns.rdatatype.A)) is not None:
            response.additional.append(dns.rrset.from_rdata_list(server.target, glue.ttl, list(glue)))


def serve(address: str, port: int, zones: Mapping[dns.name.Name, Path], faults: set[str]) -> None:
    """Answers until the process ends."""

    def respond(wire: bytes, *, by_udp: bool) -> bytes | None:
        if "--mute" in faults:
            return None
        response = _answer(dns.message.from_wire(wire), zones)
        if "--lame" in faults:
            response.flags &= ~dns.flags.AA
        question = response.question[0]
        if "--crowded" in faults and question.rdtype == dns.rdatatype.TXT:
            response.answer = [dns.rrset.from_text(question.name, 60, "IN", "TXT", '"x"')]
        if "--stingy" in faults and by_udp:
            response.answer, response.authority, response.additional = [], [], []
            response.flags |= dns.flags.TC
        return response.to_wire()

    class UDP(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            wire, listener = self.request
            if (response := respond(wire, by_udp=True)) is not None:
                listener.sendto(response, self.client_address)

    class TCP(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            with contextlib.suppress(struct.error):
                (length,) = struct.unpack("!H", self.rfile.read(2))
                if (response := respond(self.rfile.read(length), by_udp=False)) is not None:
                    self.wfile.write(struct.pack("!H", len(response)) + response)

    socketserver.ThreadingUDPServer.max_packet_size = 4096
    with (
        socketserver.ThreadingUDPServer((address, port), UDP) as udp,
        socketserver.ThreadingTCPServer((address, port), TCP) as tcp,
    ):
        threading.Thread(target=tcp.serve_forever, daemon=True).start()
        print("ready", flush=True)
        udp.serve_forever()


@contextlib.contextmanager
def name_server(address: str, port: int, zones: Mapping[str, Path], *faults: str) -> Iterator[None]:
    """Such a process, while the block runs."""
    named = (f"{origin}={file}" for origin, file in zones.items())
    command = [sys.executable, "-m", "tests.harness.name_server", address, str(port), *faults, *named]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n", "the name server did not start"
            yield
        finally:
            process.kill()


def free_port() -> int:
    """A port that is free for UDP and TCP on all loopback addresses that tests use."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


if __name__ == "__main__":
    _, listen, number, *rest = sys.argv
    served = dict(part.split("=", 1) for part in rest if not part.startswith("--"))
    serve(
        listen,
        int(number),
        {dns.name.from_text(origin): Path(file) for origin, file in served.items()},
        {part for part in rest if part.startswith("--")},
    )
