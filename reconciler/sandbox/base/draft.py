"""What rules and derivations work on: an object on its way into the database, and the account around it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from reconciler.model.kind import Kind
from reconciler.sandbox.base.database import Database, Document, Stored
from reconciler.sandbox.base.ids import prefix_of


@dataclass
class Draft:
    """
    supplied   the request's body, without what was null
    doc        the object as it will be kept; rules may put a value into its normal form
    before     the object as it is kept now; None for a create
    once       the one-time secret that a derivation has made
    """

    kind: Kind
    id: str
    supplied: Document
    doc: Document
    before: Document | None = None
    parent: str = ""
    once: str | None = None

    @property
    def is_new(self) -> bool:
        return self.before is None


class World:
    """The account as rules see it."""

    def __init__(self, database: Database, kinds: Iterable[Kind], platform_domain: str) -> None:
        self.database = database
        self.platform_domain = platform_domain
        self.caller = ""  # the bot or user whose key the request carries; empty: the account's administrator
        named = {kind.name: kind for kind in kinds}
        # Objects of two kinds are kept once, as those of the kind that the other one is the same as.
        kept = {kind.id_prefix: named[kind.same_as or kind.name] for kind in named.values() if kind.id_prefix}
        self._by_prefix = {prefix: kind.name for prefix, kind in kept.items()}
        self._kept_as = {prefix: kind.id_prefix for prefix, kind in kept.items()}

    def kind_of(self, identity: str) -> str | None:
        return self._by_prefix.get(prefix_of(identity))

    def find(self, identity: str) -> Stored | None:
        kind, prefix = self.kind_of(identity), prefix_of(identity)
        return self.database.find(kind, self._kept_as[prefix] + identity.removeprefix(prefix)) if kind else None

    @property
    def principal(self) -> str:
        """The bot or user whose key the request carries."""
        return self.caller or self.user()

    @property
    def is_admin(self) -> bool:
        """Whether the request is the administrator's: bots and other users are none."""
        return self.caller in ("", self.user())

    def is_active(self, owner: str) -> bool:
        """Whether a bot or user may sign in."""
        found = self.find(owner)
        return found is None or found.body.get("active") is not False

    def user(self) -> str:
        """The account's administrator, whose key the sandbox was started with."""
        known = self.database.fact("user")
        if known is None:
            known = self.database.new_id("usr_")
            self.database.remember("user", known)
        return known

    def is_platforms(self, host: str) -> bool:
        """Whether the domain is a subdomain of the platform's own."""
        return host.endswith(f".{self.platform_domain}")

    def domain_of(self, host: str) -> Stored | None:
        """The reserved domain that serves a host: itself, or the closest wildcard above it."""
        found = self.database.find_by_name("domain", host)
        while found is None and "." in host:
            host = host.partition(".")[2]
            found = self.database.find_by_name("domain", f"*.{host}")
        return found

    def address_of(self, hostport: str) -> Stored | None:
        return self.database.find_by_name("address", hostport)


Rule = Callable[[Draft, World], None]  # raises what it refuses
