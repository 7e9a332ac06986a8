"""`validate` reports what the platform refuses because of an object's own content, before anything is sent.

Each row of the sandbox's table of rules that sends the content of one object is also declared in a manifest.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from reconciler import kinds
from reconciler.model.kind import Kind
from reconciler.model.problem import Rejected
from reconciler.testing import Sandbox
from tests.project.texts import load_texts
from tests.sandbox.account import BODIES, Account, template
from tests.sandbox.rules import Row
from tests.sandbox.test_rules import ROWS

Document = dict[str, Any]


class Recording:
    """A sandbox that records its last request."""

    def __init__(self, sandbox: Sandbox) -> None:
        self._sandbox = sandbox
        self.last: tuple[str, str, Any] = ("", "", None)

    def request(self, method: str, path: str, body: Any = None, **more: Any) -> Any:
        self.last = (method, path, body if "content" not in more else None)
        return self._sandbox.request(method, path, body, **more)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._sandbox, name)


def declare(account: Account, method: str, path: str, body: Any) -> Document | None:
    """The manifest that would send the content of this request; None if no manifest could."""
    if not isinstance(body, dict) or method not in ("POST", "PUT"):
        return None
    for kind in kinds.every():
        pattern = re.sub(r"{[^}]*}", "([^/]+)", kind.path)
        if method == "POST" and (found := re.fullmatch(pattern, path)):
            return manifest(kind, _with_parent(kind, body, found.groups()))
        if method == "PUT" and (found := re.fullmatch(f"{pattern}/[^/]+/([^/]+)", path)):
            *parents, module = found.groups()
            if kind.by_name.get(module) is None:
                continue
            collection = path.rpartition("/")[0].rpartition("/")[0]
            whole = BODIES[template(collection)](account)
            return manifest(kind, _with_parent(kind, {**whole, module: body}, parents))
    return None


def _with_parent(kind: Kind, body: Mapping[str, Any], parents: Sequence[str]) -> Document:
    fixed = kind.wire.fixed
    spec = {name: value for name, value in body.items() if fixed.get(name) is None or fixed[name] != value}
    return {**spec, kind.parent.field: parents[0]} if kind.parent is not None else spec


def manifest(kind: Kind, spec: Document) -> Document:
    deliver = {"deliver": {kind.one_time: {"to_file": "secrets/x"}}} if kind.one_time else {}
    return {"kind": kind.name, "name": "x", "spec": spec, **deliver}


def is_reported(document: Document) -> bool:
    """Whether the manifest is refused without the platform."""
    try:
        load_texts({"manifests/a.yaml": json.dumps(document).encode()}, "prod", {})
    except Rejected as rejected:
        return any(problem.is_error for problem in rejected.problems)
    return False


# Rules whose refusals do not depend on the object's own content alone.
NOT_BY_CONTENT = {
    "only the platform knows whether the object exists": """
        NO_SUCH_OBJECT NO_BACKEND NO_POLICY_OF_MODULE NO_AUTHORITY NO_POLICY NO_POLICY_OF_RESTRICTION NO_CERTIFICATE
        NO_CHILD NO_SSH_AUTHORITY NO_DESTINATION NO_VAULT
    """,
    "another object has it, which may be in no manifest": """
        ENDPOINT_DUPLICATE POOLING_BESIDE_ONE NO_POOLING_BESIDE_POOL HOSTPORT_TAKEN ROUTE_DUPLICATE SSH_KEY_DUPLICATE
        BOT_DUPLICATE CIDR_DUPLICATE RESTRICTION_DUPLICATE DOMAIN_DUPLICATE INGRESS_DUPLICATE SOURCE_DUPLICATE
        VAULT_DUPLICATE SECRET_DUPLICATE LOGIN_ON_EDGE
    """,
    "only the platform knows what is reserved": """
        ENDPOINT_UNRESERVED HOSTPORT_DOMAIN HOSTPORT_ADDRESS HOSTPORT_OF_DOMAIN
    """,
    "depends on the role of the API key, or on the state of another object": """
        OWNER_BY_ADMIN OWNER_INACTIVE BOT_BY_ADMIN CERTIFICATE_NOT_UPLOADED
    """,
    "the row sets the other module by an earlier request; `validate` sees both in one manifest": """
        MUTUAL_TLS_UPSTREAM MODULES_UPSTREAM LOGIN_COUNT
    """,
    "the platform's list is not documented, or grows: a value that it accepts must not be refused": """
        BINDING_UNKNOWN NAMEID_FORMAT WEBHOOK_PROVIDER EVENT_TYPE FAILOVER_NESTED
    """,
    "only the platform knows which domains are its own": """
        WILDCARD_OF_ALL POLICY_ON_OWN_DOMAIN UPLOAD_ON_OWN_DOMAIN INGRESS_OWN_DOMAIN
    """,
    "depends on the time: the manifest of a certificate that has ended stays valid": """
        NOT_A_DURATION NO_USER_DURATION
    """,
}
LITERAL_IDS = frozenset(
    """
    MALFORMED_ID WRONG_ID SEVERAL_WRONG_ID BACKEND_ID POLICY_ID AUTHORITY_ID POLICY_ID_OF_RULE CHILD_ID CHILD_KIND
    """.split()  # noqa: SIM905 - a paragraph is easier to read
)
_OF_REQUESTS = frozenset({"CONTROL", "UNPARSABLE_BODY", "TRUNCATED_BODY"})
_FIRST_POLICIES = 5  # the others test the limits of a parser, for seconds


def _list_rows() -> Iterator[Row]:
    """The rows that may refuse the content of an object."""
    policies = Counter[str]()
    for row in ROWS:
        policies[row.rule] += row.rule.endswith("_POLICY")
        if row.status == 400 and row.rule not in _OF_REQUESTS and policies[row.rule] <= _FIRST_POLICIES:
            yield row


def test_validate_reports_each_refusal_of_an_objects_own_content() -> None:
    unreported: dict[str, Document] = {}
    reported: set[str] = set()
    with Sandbox() as sandbox:
        for row in _list_rows():
            sandbox.reset()
            recording = Recording(sandbox)
            account = Account(recording)  # type: ignore[arg-type]
            row.request(account)
            method, path, body = recording.last
            document = declare(account, method, path, body)
            if document is not None and is_reported(document):
                reported.add(row.rule)
            elif document is not None:
                unreported.setdefault(row.rule, document)
    excepted = {rule for rules in NOT_BY_CONTENT.values() for rule in rules.split()}
    assert {rule: unreported[rule] for rule in unreported.keys() - excepted - LITERAL_IDS} == {}
    assert excepted - unreported.keys() == set()
    assert {"SAML_METADATA", "SSH_KEY_INVALID", "HOST_KEY_INVALID", "CHAIN_ORDER", "ENDPOINT_POLICY"} <= reported
