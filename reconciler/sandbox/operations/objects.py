"""The effect of each operation on objects: one transaction from the body of a request to that of the response.

docs/sandbox.md lists the behavior that the platform's documentation leaves open.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache, partial
from itertools import islice

from msgspec.structs import replace

from reconciler.kinds import RENAMED
from reconciler.model.fields.annotations import AlwaysSent
from reconciler.model.fields.field import Field
from reconciler.model.kind import Kind
from reconciler.model.value import Json
from reconciler.sandbox import rules
from reconciler.sandbox.base import certificates, derive, name_server, provisioning
from reconciler.sandbox.base.database import Database, Document, Stored
from reconciler.sandbox.base.draft import Draft, World
from reconciler.sandbox.base.ids import is_id, prefix_of
from reconciler.sandbox.base.provisioning import Provisioning
from reconciler.sandbox.base.variants import Variants
from reconciler.sandbox.operations import links, shared_objects
from reconciler.sandbox.operations.events import Events
from reconciler.sandbox.operations.routes import Act, Operation
from reconciler.sandbox.rules import edges
from reconciler.sandbox.wire import bodies, refusal
from reconciler.sandbox.wire.queries import Query, check_id
from reconciler.sandbox.wire.responses import View

PLATFORM_DOMAIN = "sandbox.test"

Render = Callable[[Document], Document]  # from the response of the stored kind to that of the requested kind


class Objects:
    def __init__(self, database: Database, kinds: Sequence[Kind]) -> None:
        self.database = database
        self.kinds = tuple(kinds)
        self.events = Events(database)
        self.variants = Variants()
        self.provisioning = Provisioning()
        self.run_commands: list[Callable[[Stored, str], bool]] = []  # of each agent: whether the session is its own
        self.world = World(database, kinds, PLATFORM_DOMAIN)
        self._by_name = {kind.name: kind for kind in kinds}
        self._children: dict[str, list[Kind]] = {}
        for kind in kinds:
            if kind.parent is not None:
                self._children.setdefault(kind.parent.kind, []).append(kind)
        # Clients use few addresses, and everything else in a view is the same for every request.
        self._view_of = lru_cache(maxsize=64)(self._view)

    def view(self, base: str) -> View:
        """The view that renders objects for clients that use this base address."""
        return self._view_of(base, self.variants.sparse)

    def _view(self, base: str, sparse: bool) -> View:
        return View(base, self.kinds, PLATFORM_DOMAIN, self._saml_certificate, sparse=sparse)

    def answer(self, operation: Operation, values: Sequence[str], body: Document, view: View, caller: str = "") -> Json:
        """Executes an operation and returns the body of the response, None if it has none.

        `values` are the parameters of the path, outermost first. `caller` is the owner of the API key, empty for the
        administrator.
        """
        self.world.caller = caller
        body = bodies.drop_parameters(dict(zip(operation.parameters, values, strict=True)), body)
        if operation.act is Act.PUT_MODULE:
            body = bodies.unwrap_module(body)
        with self.change(view):
            return self._answer(operation, values, body, view)

    @contextmanager
    def change(self, view: View) -> Iterator[None]:
        """One transaction, which also records the events of its changes."""
        with self.database.transaction():
            yield
            self.events.record_changes(lambda stored: self._render(view, self._by_name[stored.collection], stored))

    def _answer(self, operation: Operation, values: Sequence[str], body: Document, view: View) -> Json:
        kind, field = operation.kind, operation.field
        if (kept_as := RENAMED.get(kind.name)) is not None:
            kept = self._by_name[kept_as]
            for value in values:
                _check_path_id(kind, value)
            values = [shared_objects.rename_id(value, kind, kept) for value in values]
            response = self._answer(replace(operation, kind=kept), values, body, view)
            return response and shared_objects.render_as(kind, kept, response, view)
        if operation.act is Act.CREATE:
            return self._create(kind, values[0] if values else "", body, view)
        stored = self._find(kind, values)
        match operation.act:
            case Act.GET:
                return self._render(view, kind, self._read(kind, stored))
            case Act.UPDATE:
                return self._update(kind, stored, body, view)
            case Act.DELETE if kind.wire.supports is not None and "_raw" in stored.body:
                self.delete_raw(stored.id)
            case Act.DELETE:
                self._delete(kind, stored)
            case Act.COMMAND:
                bodies.check((), body)
                self._command(stored, operation.path.rpartition("/")[2])
            case Act.PUT_MODULE | Act.GET_MODULE | Act.DELETE_MODULE | Act.DETACH:
                assert field is not None
                return self._on_module(operation.act, kind, field, stored, body, view)
        return None

    # --- lists --------------------------------------------------------------------------------------------------------

    def page(
        self, kind: Kind, values: Sequence[str], query: Query, view: View, render: Render = lambda response: response
    ) -> tuple[Json, str]:
        """The objects of one page, newest first, and the id before which the next page begins (empty: last page)."""
        if (kept_as := RENAMED.get(kind.name)) is not None:
            kept = self._by_name[kept_as]
            render = partial(shared_objects.render_as, kind, kept, view=view)
            page, last = self.page(kept, values, shared_objects.translate_query(query, kind, kept), view, render)
            return page, shared_objects.rename_id(last, kept, kind)
        parent, limit = self._parent(kind, values), query.limit
        # The secrets of all vaults are in one collection.
        vault = self._find(self._by_name["Vault"], values).id if values and kind.name == "Secret" else ""
        # Whether the selectors of an operator match is not evaluated: each bound endpoint is one of every operator.
        operator = self._find(self._by_name["KubernetesOperator"], values).id if _is_bound(kind, values) else ""
        if query.before is not None and self.database.find(kind.name, query.before, parent) is None:
            check_id("before_id", query.before, kind.id_prefix)
        with self.change(view):
            if query.is_narrowed or vault or operator:
                page = self._filter_page(kind, parent, query, view, vault, operator, render)
            else:
                page = self.database.page(kind.name, parent, query.before, limit + 1)
            follows = page[limit - 1].id if len(page) > limit else ""
            return [
                render(self._render(view, kind, self._read(kind, stored), listed=True)) for stored in page[:limit]
            ], follows

    def _filter_page(
        self, kind: Kind, parent: str, query: Query, view: View, vault: str, operator: str, render: Render
    ) -> list[Stored]:
        """The objects that match the query, up to one more than a page."""
        nothing = Stored(0, kind.name, parent, "", bodies.complete(kind.name, bodies.fields(kind), {}))
        view = self._view_of(view.base, False)  # filters also match fields that a sparse response omits
        keep = query.keep(_list_filter_fields({"created_at", *kind.wire.fixed, *self._render(view, kind, nothing)}))
        candidates = self.database.iterate(kind.name, parent, query.before)
        if vault:
            candidates = (candidate for candidate in candidates if candidate.body["vault_id"] == vault)
        if operator:
            candidates = (candidate for candidate in candidates if "kubernetes" in _bindings_of(candidate))
        kept = (
            candidate
            for candidate in candidates
            if keep({**render(self._render(view, kind, candidate)), "binding": ", ".join(_bindings_of(candidate))})
        )
        return list(islice(kept, query.limit + 1))

    def list_all(self, kind: Kind, values: Sequence[str], view: View) -> list[Json]:
        """All objects, in the order of creation."""
        found = self.database.page(kind.name, self._parent(kind, values))
        return [self._render(view, kind, stored, listed=True) for stored in reversed(found)]

    # --- lookup -------------------------------------------------------------------------------------------------------

    def _parent(self, kind: Kind, values: Sequence[str]) -> str:
        if kind.parent is None:
            return ""
        parent = self._by_name[kind.parent.kind]
        is_source = kind.name == "EventSource" and is_id(values[0], parent.id_prefix)
        if is_source and self.database.find(parent.name, values[0], "") is None:
            raise refusal.NO_SUBSCRIPTION(id=values[0])
        self._find(parent, values[:1])
        return values[0]

    def _find(self, kind: Kind, values: Sequence[str]) -> Stored:
        parent = self._parent(kind, values)
        found = self.database.find(kind.name, values[-1], parent)
        if found is not None:
            return found
        if kind.name == "EventSource":
            raise refusal.NO_SOURCE(id=parent, value=values[-1])
        _check_path_id(kind, values[-1])
        if kind.name == "HTTPSEdgeRoute" and self.database.parents(kind.name, values[-1]):
            raise refusal.ROUTE_ELSEWHERE(id=values[-1])
        raise refusal.NOT_FOUND()

    def _render(self, view: View, kind: Kind, stored: Stored, *, listed: bool = False) -> Document:
        children = {}
        for below in self._children.get(kind.name, ()):
            assert below.parent is not None
            found = self.database.page(below.name, stored.id)
            # Children are listed in the order of creation.
            children[below.parent.embedded] = [self._render(view, below, stored) for stored in reversed(found)]
        return view.render(kind, stored, children, listed=listed)

    # --- writing ------------------------------------------------------------------------------------------------------

    def _create(self, kind: Kind, parent: str, body: Document, view: View) -> Document:
        if kind.parent is not None:
            self._parent(kind, [parent])
        body = rules.rename_older_fields(kind.name, body)
        bodies.check(bodies.list_accepted(kind, update=False), body)
        supplied = {name: value for name, value in body.items() if value is not None}
        doc = bodies.complete(kind.name, bodies.fields(kind), supplied)
        identity = self.database.new_id(kind.id_prefix) if kind.id_prefix else ""
        draft = Draft(kind, identity, supplied, doc, parent=parent)
        stored = self._settle(draft, None)
        if supplied.get("verify_with_test_event"):
            self.events.verify(stored.id)
        response = self._render(view, kind, stored, listed=True)
        return {**response, kind.one_time: draft.once} if kind.one_time else response

    def _update(self, kind: Kind, stored: Stored, body: Document, view: View) -> Document:
        rules.check_not_raw(stored)
        known = bodies.list_accepted(kind, update=True)
        body = rules.drop_empty_fields(kind.name, body)
        bodies.check(known, body)
        rules.check_update(kind.name, body)
        doc, by_name = dict(stored.body), {field.name: field for field in known}
        left_out = [field for field in known if AlwaysSent in field and field.name not in body]
        for field in left_out if self.variants.patch_empties else ():
            doc[field.name] = bodies.fill_defaults(kind.name, field, None)
        if self.variants.null_ignored:
            body = {name: value for name, value in body.items() if value is not None}
        for name, value in body.items():
            field = by_name[name]
            if value is None and field.delete_segment is not None:
                path = f"{view.uri(kind, stored)}/{field.delete_segment}"
                raise refusal.NOT_BY_PATCH(field=name, path=path.removeprefix(view.base))
            doc[name] = bodies.fill_defaults(kind.name, field, value)
        supplied = {name: value for name, value in body.items() if value is not None}
        draft = Draft(kind, stored.id, supplied, doc, before=stored.body, parent=stored.parent)
        return self._render(view, kind, self._settle(draft, stored))

    def _settle(self, draft: Draft, stored: Stored | None) -> Stored:
        """Validates, derives and stores an object: the last step of every write."""
        rules.check(draft, self.world)
        links.check_references(draft, self.world)
        derive.derive(draft, self.world)
        kind, sources = draft.kind, draft.doc.get("sources")
        if kind.key != "id":
            draft.id = draft.doc[kind.key]
        if kind.name == "EventSubscription":
            draft.doc["sources"] = None  # stored as objects of their own
        if stored is None:
            if kind.key != "id" and self.database.find(kind.name, draft.id, draft.parent) is not None:
                raise refusal.SOURCE_DUPLICATE(value=draft.id)
            stored = self.database.insert(kind.name, draft.id, draft.doc, draft.parent)
        else:
            stored = self.database.replace(stored, draft.doc)
        taken = self.database.take(stored, links.names(draft), is_new=draft.is_new)
        if taken is not None:
            is_foreign = self.database.find_by_name(*taken) is None
            raise links.duplicate_refusal(*taken, is_foreign=is_foreign)
        self.database.use(stored, links.uses(draft, self.world), is_new=draft.is_new)
        if kind.name == "EventSubscription" and sources is not None:  # None: not in the update
            self._put_sources(stored, draft.supplied.get("sources") or [])
        if kind.name in edges.SCHEMES:
            self._serve_hostports(stored, (draft.before or {}).get("hostports", []))
        self._drop_managed(draft.before, draft.doc)
        return stored

    def _put_sources(self, subscription: Stored, sources: Sequence[Document]) -> None:
        below = self._children["EventSubscription"][0]
        existing = {stored.id: stored for stored in self.database.page(below.name, subscription.id)}
        for removed in existing.keys() - {source["type"] for source in sources}:
            self.database.delete(existing[removed])
        for source in sources:
            doc = bodies.complete(below.name, bodies.fields(below), source)
            if source["type"] not in existing:
                self.database.insert(below.name, source["type"], doc, subscription.id)
            elif doc != existing[source["type"]].body:
                self.database.replace(existing[source["type"]], doc)

    def _serve_hostports(self, edge: Stored, before: Sequence[str]) -> None:
        """Creates, updates and deletes the endpoints of an edge; `before` are its former hostports."""
        for hostport in before:
            served = self.database.find_by_name("edge endpoint", hostport)
            if served is not None and hostport not in edge.body["hostports"]:
                self.database.delete(served)
        for hostport in edge.body["hostports"]:
            served = self.database.find_by_name("edge endpoint", hostport)
            raw = edges.build_endpoint(edge, hostport, self.world)
            if served is not None:
                self.database.replace(served, {"_raw": {**served.body["_raw"], **raw}})
                continue
            raw["created_at"] = raw["updated_at"]
            served = self.database.insert("CloudEndpoint", self.database.new_id("ep_"), {"_raw": raw})
            self.database.take(served, [("edge endpoint", hostport)], is_new=True)

    def _on_module(
        self, act: Act, kind: Kind, field: Field, stored: Stored, body: Document, view: View
    ) -> Document | None:
        value = stored.body.get(field.name)
        if act is Act.PUT_MODULE:
            rules.check_not_raw(stored)
            rules.check_retired(kind.name, {field.name: body})
            bodies.check(field.fields, body)
            doc = {**stored.body, field.name: bodies.fill_defaults(kind.name, field, body)}
            draft = Draft(kind, stored.id, {field.name: body}, doc, before=stored.body, parent=stored.parent)
            value = self._settle(draft, stored).body[field.name]
            return view.module(kind, field, value, stored.id)
        if not value:
            raise refusal.NOT_FOUND()
        if act is Act.GET_MODULE:
            return view.module(kind, field, value, stored.id)
        if field.name == "certificate_id" and stored.body["certificate_management_policy"] is not None:
            raise refusal.MANAGED_CERTIFICATE()
        cleared = {**stored.body, field.name: bodies.fill_defaults(kind.name, field, None)}
        self._settle(Draft(kind, stored.id, {}, cleared, before=stored.body, parent=stored.parent), stored)
        return None

    def _delete(self, kind: Kind, stored: Stored) -> None:
        rules.check_delete(stored, self.world)
        for below in self._children.get(kind.name, ()):
            for child in self.database.page(below.name, stored.id):
                self.database.delete(child)
        while (user := self.database.user_of(stored.id)) is not None:
            if links.CASCADES.get(kind.name) != user.collection:
                raise links.in_use_refusal(kind.name, stored.id, user.id)
            self.database.delete(user)
        self.database.delete(stored)
        if kind.name in edges.SCHEMES:
            for hostport in stored.body.get("hostports", ()):
                if (served := self.database.find_by_name("edge endpoint", hostport)) is not None:
                    self.database.delete(served)
        self._drop_managed(stored.body, {})

    # --- certificates that the platform manages -----------------------------------------------------------------------

    def _read(self, kind: Kind, stored: Stored) -> Stored:
        """The object as this read returns it, which may advance the provisioning of a managed certificate."""
        advanced = provisioning.advance(stored.body, self.provisioning, self.database.now(), self._find_missing)
        if advanced is None:
            return stored
        doc, is_obtained = advanced
        if is_obtained and "certificate_id" in doc:
            moment, policy = self.database.now(), doc["certificate_management_policy"]
            pem = certificates.issue(doc["domain"], policy["private_key_type"], moment)
            doc["certificate_id"] = self._store_managed(pem, stored.id, certificates.stamp(moment))
        self._drop_managed(stored.body, doc)
        stored = self.database.replace(stored, doc)
        draft = Draft(kind, stored.id, {}, doc, before=doc, parent=stored.parent)
        self.database.use(stored, links.uses(draft, self.world))
        return stored

    def _find_missing(self, doc: Document) -> tuple[str, str] | None:
        """The error code and text of a DNS record that is not set."""
        if self.provisioning.nameserver is None:
            return None
        return name_server.find_missing(doc, self.provisioning.nameserver)

    def _store_managed(self, pem: str, domain_id: str, issued_at: str) -> str:
        kind = self._by_name["TLSCertificate"]
        identity = self.database.new_id(kind.id_prefix)
        doc = bodies.complete(kind.name, bodies.fields(kind), {"certificate_pem": pem})
        doc |= certificates.certificate(certificates.certificates(pem)[0])
        doc |= {"created_at": issued_at, "issued_at": issued_at, "_managed": domain_id}
        self.database.insert(kind.name, identity, doc)
        return identity

    def _drop_managed(self, before: Document | None, after: Document) -> None:
        """Deletes a managed certificate that its domain no longer uses."""
        old = (before or {}).get("certificate_id")
        certificate = self.database.find("TLSCertificate", old) if old else None
        if certificate is not None and certificate.body.get("_managed") and old != after.get("certificate_id"):
            self.database.delete(certificate)

    def _command(self, stored: Stored, command: str) -> None:
        """Executes a command on an agent session. `stop` deletes the session and its endpoints and tunnels."""
        if any(run_command(stored, command) for run_command in [*self.run_commands]):
            return
        if command == "stop":
            self.delete_raw(stored.id)

    # --- keys ---------------------------------------------------------------------------------------------------------

    def account_of(self, token: str) -> str:
        """The account of the API key with this token; empty, as for the first account, if no existing key has it."""
        return self.database.account_by_name("key", self._key_id(token)) or ""

    def _key_id(self, token: str) -> str:
        return f"{self._by_name['APIKey'].id_prefix}{token.partition('_')[0]}"

    def owner_of(self, token: str) -> str | None:
        """The owner of the account's API key with this token; None if no existing key has it."""
        found = self.database.find("APIKey", self._key_id(token))
        digest = hashlib.sha256(token.encode()).hexdigest()
        if found is None or not secrets.compare_digest(found.body.get("_token_sha256", ""), digest):
            return None
        return str(found.body["owner_id"])

    # --- objects that no client can create ----------------------------------------------------------------------------

    def insert_raw(self, collection: str, raw: Document) -> None:
        """Stores an object without validation, such as the ephemeral endpoint of an agent."""
        kind = next((kind for kind in self.kinds if kind.path == f"/{collection.strip('/')}"), None)
        if kind is None:
            raise refusal.NO_SUCH_PATH(path=collection)
        with self.database.transaction():
            identity = raw.get("id") or self.database.new_id(kind.id_prefix)
            if not isinstance(identity, str):
                raise refusal.WRONG_TYPE(field="id", wanted="text")
            if self.database.find(kind.name, identity) is not None:
                raise refusal.RAW_DUPLICATE(id=identity, path=kind.path)
            self.database.insert(kind.name, identity, {"_raw": raw})

    def delete_raw(self, identity: str) -> None:
        """Deletes an object that was stored without validation, and all such objects that refer to it."""
        with self.database.transaction():
            for kind in self.kinds:
                for stored in self.database.page(kind.name):
                    raw = stored.body.get("_raw", {})
                    refers = any(isinstance(value, dict) and identity in value.values() for value in raw.values())
                    if raw and (refers or stored.id == identity):
                        self.database.delete(stored)

    def _saml_certificate(self) -> str:
        """The PEM certificate for SAML requests, issued once for a database."""
        pem = self.database.fact("saml_certificate")
        if pem is None:
            pem = certificates.issue(f"idp.{PLATFORM_DOMAIN}", "ecdsa", self.database.now())
            self.database.remember("saml_certificate", pem)
        return pem


def _check_path_id(kind: Kind, identity: str) -> None:
    if kind.id_prefix and not is_id(identity, kind.id_prefix):
        cause = refusal.WRONG_PATH_ID if prefix_of(identity) else refusal.MALFORMED_PATH_ID
        raise cause(id=identity, prefix=kind.id_prefix)


def _is_bound(kind: Kind, values: Sequence[str]) -> bool:
    """Whether endpoints are listed below an operator of Kubernetes."""
    return kind.name == "CloudEndpoint" and bool(values)


def _bindings_of(endpoint: Stored) -> list[str]:
    raw = endpoint.body.get("_raw")
    return list((raw if isinstance(raw, dict) else endpoint.body).get("bindings") or [])


def _list_filter_fields(fields: set[str]) -> set[str]:
    """The names that filters know. Those of endpoints have `binding`, a text, instead of the list."""
    return {*fields - {"bindings"}, "binding"} if "bindings" in fields else fields
