"""One way into an account as people, policies and programs see it: what it is called, and who gets through."""

from __future__ import annotations

from msgspec import Struct


class AccessEntry(Struct, frozen=True):
    """An entry point of one state of an account.

    entry_point  `https://shop.example.com/admin…`, as in `AccessChange`
    scheme, host, port, path  what clients connect to; `path` is empty for other schemes than https
    below        the paths that begin with `path` and that no longer one serves; False: `path` itself
    binding      `public`, `internal` or `kubernetes`; `account`: a part of the account; `credential`: what it may open
    admits       who gets through, in words; of an object of another stack only that it has gates
    public       a client may get through without certificate, sign-in, token or signature, from at least half of all
                 IPv4 or IPv6 addresses
    unknown      what is not documented or not known, and decides who gets through
    resources    the addresses of the resources that decide about it, and the names of other objects
    stack        the other stack whose objects alone serve the host; empty if there is none
    origin       `unmanaged` if only objects that no stack manages serve the host, `ephemeral` if only agents do whose
                 endpoints no stack declares
    """

    entry_point: str
    scheme: str
    host: str
    port: int
    path: str
    below: bool
    binding: str
    admits: str
    public: bool
    unknown: tuple[str, ...] = ()
    resources: tuple[str, ...] = ()
    stack: str = ""
    origin: str = ""
