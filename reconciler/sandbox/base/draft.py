"""The input of rules and derivations: an object before it is stored (`Draft`), and the account (`World`)."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from msgspec import Struct

from reconciler.kinds import RENAMED
from reconciler.model.kind import Kind
from reconciler.sandbox.base.database import Database, Document, Stored
from reconciler.sandbox.base.ids import prefix_of


class Draft(Struct):
    """An object that a request creates or updates.

    supplied   the body of the request, without null values
    doc        the document to store; rules may normalize its values
    before     the stored document; None for a create
    once       the one-time secret of a create
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
    """The account, for rules: finds objects, names and the caller."""

    def __init__(self, database: Database, kinds: Iterable[Kind], platform_domain: str) -> None:
        self.database = database
        self.platform_domain = platform_domain
        self.caller = ""  # the bot or user that owns the request's key; empty: the administrator
        named = {kind.name: kind for kind in kinds}
        # Objects in two collections are stored once.
        kept = {kind.id_prefix: named[RENAMED.get(kind.name, kind.name)] for kind in named.values() if kind.id_prefix}
        self._by_prefix = {prefix: kind.name for prefix, kind in kept.items()}
        self._kept_as = {prefix: kind.id_prefix for prefix, kind in kept.items()}

    def kind_of(self, identity: str) -> str | None:
        return self._by_prefix.get(prefix_of(identity))

    def find(self, identity: str) -> Stored | None:
        kind, prefix = self.kind_of(identity), prefix_of(identity)
        return self.database.find(kind, self._kept_as[prefix] + identity.removeprefix(prefix)) if kind else None

    @property
    def principal(self) -> str:
        """The bot or user that owns the API key of the request."""
        return self.caller or self.user()

    @property
    def is_admin(self) -> bool:
        """Whether the request uses a key of the administrator."""
        return self.caller in ("", self.user())

    def is_active(self, owner: str) -> bool:
        """Whether the keys and credentials of a bot or user are accepted."""
        found = self.find(owner)
        return found is None or found.body.get("active") is not False

    def user(self) -> str:
        """The id of the account's administrator, who owns the key that the sandbox was started with."""
        name = self.database.own("user")
        identity = self.database.fact(name)
        if identity is None:
            identity = self.database.new_id("usr_")
            self.database.remember(name, identity)
        return identity

    def is_user_of_other(self, identity: str) -> bool:
        """Whether the id is that of the administrator of another account."""
        return self.database.is_fact_of_other("user", identity)

    def is_platforms(self, host: str) -> bool:
        """Whether the host is a subdomain of the platform's domain."""
        return host.endswith(f".{self.platform_domain}")

    def domain_of(self, host: str) -> Stored | None:
        """The reserved domain that covers a host: the host itself, or the closest wildcard above it."""
        found = self.database.find_by_name("domain", host)
        while found is None and "." in host:
            host = host.partition(".")[2]
            found = self.database.find_by_name("domain", f"*.{host}")
        return found

    def address_of(self, hostport: str) -> Stored | None:
        return self.database.find_by_name("address", hostport)


Rule = Callable[[Draft, World], None]  # raises Refusal
