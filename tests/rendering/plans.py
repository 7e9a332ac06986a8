"""Examples of plans, and a hypothesis strategy for arbitrary plans."""

from __future__ import annotations

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy
from msgspec.structs import replace

from reconciler.model.access_change import AccessChange, Verdict
from reconciler.model.access_entry import AccessEntry
from reconciler.model.address import Address
from reconciler.model.change import Action, Cause, Change, ChangedBy, FieldChange, Order, Reason, Risk
from reconciler.model.manifest import Delivery
from reconciler.model.plan import Approval, ApprovalItem, Base, Call, Forecast, Observed, OwnerDraft, Plan, Verb
from reconciler.model.problem import Position, Problem, Severity
from reconciler.model.snapshot import Binding
from reconciler.model.value import Hidden, JsonTemplate, Ref, Secret, Template
from reconciler.operations.run_context import read_run_context

EDGE_ID = "edgtls_2ABCDEFGHIJKLMNOPQRSTUVWXYZ"
BACKEND_ID = "bkdfo_2ABCDEFGHIJKLMNOPQRSTUVWXYZ"


def at(line: int) -> Position:
    return Position("manifests/payments.yaml", line, 3)


OFFICE = Address("IPPolicy", "office")
PAYMENTS = Address("TLSEdge", "payments")
BACKEND = Address("FailoverBackend", "payments")
ROUTE = Address("HTTPSEdgeRoute", "api")

CREDENTIAL = Address("TunnelCredential", "rome")
TO_COMMAND = Delivery(
    "to_command",
    "sh",
    at(62),
    {
        "run": ["sh", "-c", "vault kv put secret/rome token=- # it's\n\x1b[2K \u202e ::error ::<b>`x`", "--", ""],
        "check": ["vault", "token", "lookup"],
        "env": ["VAULT_ADDR", "VAULT_TOKEN"],
    },
)

WHOLE = Plan(
    "prod",
    changes=(
        Change(
            OFFICE,
            Action.CREATE,
            Reason.DECLARED,
            position=at(1),
            fields=(FieldChange("description", None, "Office", ChangedBy.GIT),),
            is_pending=True,
        ),
        Change(
            PAYMENTS,
            Action.UPDATE,
            Reason.FIELDS,
            id=EDGE_ID,
            position=at(12),
            fields=(
                FieldChange("description", "pay", "Payments \x1b[31m\u202eevil", ChangedBy.PLATFORM),
                FieldChange("backend.backend_id", BACKEND_ID, Ref(BACKEND), ChangedBy.GIT),
                FieldChange("ip_restriction.ip_policy_ids", ["ipp_1"], ["ipp_1", Ref(OFFICE)], ChangedBy.GIT),
                FieldChange(
                    "traffic_policy.value",
                    "on_http_request:\n  - name: a\n    actions: []\n",
                    "on_http_request:\n  - name: b\n    actions: []\n",
                    ChangedBy.BOTH,
                ),
                FieldChange("mutual_tls", {"enabled": True, "certificate_authority_ids": ["ca_1", "ca_2"]}, None),
            ),
        ),
        Change(
            Address("CertificateAuthority", "partners"),
            Action.REPLACE,
            Reason.IMMUTABLE,
            id="ca_1",
            order=Order.CREATE_FIRST,
            risks=(Risk.INTERRUPTS_TRAFFIC,),
            position=at(40),
            fields=(
                FieldChange("ca_pem", "-----BEGIN\nabc\n-----END", "-----BEGIN\nabd\n-----END", ChangedBy.GIT, True),
                FieldChange("secret", Hidden("a"), Hidden("b"), ChangedBy.GIT),
            ),
            is_pending=True,
        ),
        Change(
            Address("ReservedDomain", "old"),
            Action.DELETE,
            Reason.REMOVED,
            id="rd_1",
            risks=(Risk.IRREVERSIBLE,),
            protected=True,
            is_pending=True,
        ),
        Change(
            CREDENTIAL,
            Action.REPLACE,
            Reason.ROTATION,
            id="cr_1",
            risks=(Risk.RUNS_COMMAND, Risk.ISSUES_CREDENTIAL),
            position=at(60),
            is_pending=True,
        ),
        Change(
            Address("TunnelCredential", "oslo"),
            Action.CREATE,
            Reason.DECLARED,
            risks=(Risk.ISSUES_CREDENTIAL,),
            position=at(70),
        ),
        Change(
            Address("BotUser", "new"),
            Action.MOVE,
            Reason.RENAMED,
            id="bot_1",
            former=Address("BotUser", "older"),
            is_pending=True,
        ),
    ),
    additions=(
        Change(
            Address("IPPolicyRule", "ipr_9"),
            Action.DELETE,
            Reason.ADDED,
            id="ipr_9",
            risks=(Risk.ADDED,),
            position=at(1),
            parent=OFFICE,
            fields=(FieldChange("cidr", "0.0.0.0/0 \x1b[31m\u202eevil", None, ChangedBy.PLATFORM),),
        ),
    ),
    calls=(
        Call("create IPPolicy/office", OFFICE, Verb.CREATE, "/ip_policies", body={"description": "Office"}),
        Call(
            "update TLSEdge/payments", PAYMENTS, Verb.UPDATE, f"/edges/tls/{EDGE_ID}", needs=("create IPPolicy/office",)
        ),
        Call(
            "create HTTPSEdgeRoute/api",
            ROUTE,
            Verb.CREATE,
            Template(("/edges/https/", Ref(Address("HTTPSEdge", "web")), "/routes")),
            body={"$ref": 1, "secret": Secret("correct horse", "env:HOOK")},
            needs=("create IPPolicy/office", "update TLSEdge/payments"),
        ),
        Call("create TunnelCredential/rome", CREDENTIAL, Verb.CREATE, "/credentials", deliver={"token": TO_COMMAND}),
        Call(
            "create TunnelCredential/oslo",
            Address("TunnelCredential", "oslo"),
            Verb.CREATE,
            "/credentials",
            deliver={"token": Delivery("to_dotenv", "secrets/.env", settings={"name": "OSLO_TOKEN"})},
        ),
    ),
    problems=(
        Problem(
            "refers to nothing",
            "declare it",
            "TLSEdge/x.backend",
            at(3),
            code="unknown-reference",
            values={"kind": "IPPolicy"},
        ),
        Problem("is deprecated", "", "ReservedDomain/a.region", severity=Severity.WARNING, code="retired-kind"),
    ),
    approvals=(
        Approval("delete", "ReservedDomain", 1, "irreversible: cannot be recovered after deletion"),
        Approval("adopt", "BotUser", 1, "already exists and is not managed by any stack", granted=True),
    ),
    observed={BACKEND: Observed(BACKEND_ID, {"description": ""}), PAYMENTS: Observed(EDGE_ID, {"$odd": [1, None]})},
    elsewhere={"staging": (("BotUser", "bot_4"),)},
    unmanaged=(("BotUser", "bot_2"), ("BotUser", "bot_3"), ("TCPEdge", "edgtcp_1")),
    forecast=Forecast(130, 60.0),
)

_CAUSES = (Cause.THIS_CHANGE, Cause.DRIFT, *[Cause.PENDING] * 3, Cause.THIS_CHANGE, Cause.PENDING)
OF_A_BRANCH = replace(
    WHOLE,
    changes=tuple(
        replace(change, cause=cause, fields=tuple(replace(field, cause=cause) for field in change.fields))
        for change, cause in zip(WHOLE.changes, _CAUSES, strict=True)
    ),
    additions=tuple(replace(change, cause=Cause.DRIFT) for change in WHOLE.additions),
    problems=(),
    approvals=(replace(WHOLE.approvals[0], items=(ApprovalItem("ReservedDomain/old", "rd_1", "3f2a9c"),)),),
    base=Base("origin/main", "abcdef0123456789", withdrawn=(Change(ROUTE, Action.DELETE, Reason.REMOVED),)),
    commit="0123456789abcdef",
    created=1_700_000_000.0,
    account="https://api.example.com",
)
"""The same changes, compared with a base."""

CONTEXT = read_run_context(
    {
        "GITHUB_ACTIONS": "true",
        "GITHUB_REPOSITORY": "octo/infra",
        "GITHUB_ACTOR": "mara",
        "GITHUB_REF": "refs/pull/42/merge",
        "GITHUB_RUN_ID": "99",
        "GITHUB_WORKFLOW": "Plan",
    },
    environment="production",
    commit=OF_A_BRANCH.commit,
)

_IP_POLICY_ID = "ipp_2ABCDEFGHIJKLMNOPQRSTUVWXYZ"
_COMMIT = "abc1234def5678abc1234def5678abc1234def56"
_DRIFTED = FieldChange("description", "pay", "Payments", ChangedBy.PLATFORM, cause=Cause.DRIFT)

_PAY = "https://pay.example.com"


def open_payments(host: str, witness: str, digest: str) -> AccessChange:
    return AccessChange(
        f"https://{host}",
        Verdict.WIDENS,
        "203.0.113.0/24",
        "everyone",
        witness,
        is_certain=True,
        causes=("TLSEdge/payments",),
        digest=digest,
        cause=Cause.THIS_CHANGE,
    )


ACCESS = (
    open_payments("pay.example.com", f"`GET {_PAY}/` from 192.0.2.1", "0123456789abcdef"),
    *(open_payments(f"{name}.pay.example.com", "", "") for name in ("eu", "us", "jp", "au", "za")),
    AccessChange(
        "https://*.example.com",
        Verdict.WIDENS,
        "sign-in at google (example.com)",
        "everyone",
        "`GET https://deep.any.example.com/` from 192.0.2.1, not signed in",
        False,
        ("FailoverBackend/payments",),
        "89abcdef01234567",
        ("a wildcard serves all depths",),
        Cause.DRIFT,
    ),
    AccessChange(
        "what TunnelCredential/rome may open",
        Verdict.EXPOSES,
        "no way in",
        "any endpoint, address and label",
        "an agent may open any endpoint, address or label",
        True,
        ("TunnelCredential/rome",),
        "",
        cause=Cause.PENDING,
    ),
)
REVIEWED = Plan(
    "prod",
    access=ACCESS,
    changes=(
        Change(
            PAYMENTS,
            Action.UPDATE,
            Reason.FIELDS,
            id=EDGE_ID,
            position=at(12),
            risks=(Risk.WIDENS_ACCESS,),
            fields=(
                FieldChange(
                    "ip_restriction.ip_policy_ids",
                    [_IP_POLICY_ID, "ipp_9"],
                    [_IP_POLICY_ID],
                    ChangedBy.GIT,
                    cause=Cause.THIS_CHANGE,
                ),
                _DRIFTED,
                FieldChange("hostports", [], ["a.example.com:443"], ChangedBy.GIT, cause=Cause.PENDING),
            ),
            cause=Cause.THIS_CHANGE,
        ),
        Change(
            Address("ReservedDomain", "old"),
            Action.DELETE,
            Reason.REMOVED,
            id="rd_1",
            risks=(Risk.IRREVERSIBLE,),
            is_pending=True,
            identity={"domain": "old.example.com", "description": "Former shop"},
            cause=Cause.PENDING,
        ),
        Change(
            BACKEND,
            Action.UPDATE,
            Reason.FIELDS,
            id=BACKEND_ID,
            position=at(50),
            fields=(_DRIFTED,),
            cause=Cause.DRIFT,
        ),
    ),
    additions=(
        Change(
            Address("IPPolicyRule", "ipr_9"),
            Action.DELETE,
            Reason.ADDED,
            id="ipr_9",
            risks=(Risk.ADDED,),
            parent=OFFICE,
            fields=(FieldChange("cidr", "0.0.0.0/0", None, ChangedBy.PLATFORM, cause=Cause.DRIFT),),
            cause=Cause.DRIFT,
        ),
    ),
    approvals=(
        Approval(
            "widens_access",
            "*",
            1,
            "widens access",
            items=(ApprovalItem(_PAY, "", "0123456789abcdef"),),
        ),
    ),
    created=1767225600.0,
    forecast=Forecast(3, 0.0),
    base=Base(
        "main",
        _COMMIT,
        withdrawn=(Change(Address("BotUser", "ci"), Action.CREATE, Reason.DECLARED),),
    ),
    names={_IP_POLICY_ID: "IPPolicy/office", "ipp_9": "IPPolicy/partners of stack web"},
    environment="prod",
)
NOTHING_BY_BRANCH = replace(REVIEWED, access=(), changes=REVIEWED.changes[2:], additions=(), base=Base("main", _COMMIT))
BEHIND = replace(REVIEWED, base=Base("origin/main", _COMMIT, behind=2))
INVALID_BASE = replace(
    REVIEWED,
    base=Base(
        "main", _COMMIT, problems=(Problem("unknown field", "", "IPPolicy/a.name", at(3), code="unknown-field"),)
    ),
)

names = st.from_regex(r"[A-Za-z0-9][A-Za-z0-9._-]{0,12}", fullmatch=True)
addresses = st.builds(Address, st.from_regex(r"[A-Z][A-Za-z0-9]{0,8}", fullmatch=True), names)
outputs = st.sampled_from(["id", "addr", "cname_target"])
texts = st.text(st.characters(), max_size=12)  # with lone surrogates, which JSON of the platform can contain
sentences = texts.map(lambda text: f"{text}!")  # the text of a problem is never empty
refs = st.builds(Ref, addresses, outputs)
templates = st.builds(Template, st.lists(texts | refs, max_size=3).map(tuple))
documents = st.builds(JsonTemplate, st.lists(texts | refs | templates, max_size=3).map(tuple))
hidden = st.builds(Hidden, texts)
secrets = st.builds(Secret, st.sampled_from(["hunter2", "correct horse"]), st.sampled_from(["env:A", "file:b"]))
scalars = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | texts
keys = texts | st.sampled_from(["$ref", "$", "$$", "$secret", "$$hidden"])


def values(leaves: SearchStrategy[object]) -> SearchStrategy[object]:
    return st.recursive(
        leaves, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=3), max_leaves=6
    )


anything = values(scalars | refs | templates | documents | hidden | secrets)
plain = values(scalars)
positions = st.builds(Position, texts, st.integers(1, 999), st.integers(1, 99))
maybe_position = st.none() | positions
digests = st.dictionaries(texts, texts, max_size=2)


def some(strategy: SearchStrategy[object]) -> SearchStrategy[tuple[object, ...]]:
    return st.lists(strategy, max_size=2).map(tuple)


field_changes = st.builds(
    FieldChange, texts, anything, anything, st.sampled_from(ChangedBy), st.booleans(), maybe_position
)
changes = st.builds(
    Change,
    addresses,
    st.sampled_from(Action),
    st.sampled_from(Reason),
    st.none() | texts,
    some(field_changes),
    st.none() | st.sampled_from(Order),
    some(st.sampled_from(Risk)),
    st.booleans(),
    maybe_position,
    st.none() | addresses,
    st.none() | addresses,
    st.booleans(),
)
access_changes = st.builds(
    AccessChange,
    texts,
    st.sampled_from(Verdict),
    texts,
    texts,
    texts,
    st.booleans(),
    some(addresses.map(str)),
    texts,
    some(texts),
    st.none() | st.sampled_from(Cause),
)
drafts = st.builds(
    OwnerDraft,
    address=addresses,
    text=anything,
    intent=st.none() | texts,
    applied=st.dictionaries(texts, anything, max_size=2),
    protect=st.booleans(),
    pending=st.booleans(),
)
deliveries = st.builds(
    Delivery,
    texts | st.sampled_from(["to_file", "to_dotenv", "to_kubernetes_secret", "to_command"]),
    texts,
    maybe_position,
    st.dictionaries(st.sampled_from(["run", "check", "env", "name", "namespace", "key"]), st.lists(texts) | texts),
)
calls = st.builds(
    Call,
    id=texts,
    address=addresses,
    verb=st.sampled_from(Verb),
    path=texts | templates,
    target=st.none() | texts,
    body=st.none() | st.dictionaries(keys, anything, max_size=3),
    needs=some(texts),
    owner=st.none() | drafts,
    deliver=st.dictionaries(texts, deliveries, max_size=1),
)
plans = st.builds(
    Plan,
    stack=st.sampled_from(["prod", "test"]),
    access=some(access_changes),
    changes=some(changes),
    calls=some(calls),
    problems=some(st.builds(Problem, sentences, texts, texts, maybe_position, st.sampled_from(Severity))),
    approvals=some(
        st.builds(Approval, texts, texts, st.integers(0, 9), texts, st.booleans(), is_optional=st.booleans())
    ),
    observed=st.dictionaries(
        addresses, st.builds(Observed, texts, st.dictionaries(keys, plain, max_size=2)), max_size=2
    ),
    resolved=st.dictionaries(texts, plain, max_size=2),
    bindings=st.dictionaries(addresses, st.none() | st.builds(Binding, texts, digests, st.booleans()), max_size=2),
    additions=some(changes),
    unmanaged=some(st.tuples(texts, texts)),
    elsewhere=st.dictionaries(texts, some(st.tuples(texts, texts)), max_size=2),
    manifest_digest=texts,
    declared=st.integers(0, 9),
    judged=digests,
    commit=texts,
    forecast=st.builds(Forecast, st.integers(0, 999), st.floats(0, 1e6)),
)


def list_ways_in(number: int) -> list[AccessEntry]:
    """Entry points of that many hosts: public ones, of an office, of another stack, internal ones; and a credential."""
    found = []
    for place in range(number):
        host, stack = f"shop-{place}.example.com", "web" if place % 7 == 3 else ""
        binding = "internal" if place % 5 == 4 else "public"
        suffix = " (internal)" if binding == "internal" else ""
        for path in ("/…", "/admin…") if not stack else ("",):
            is_open = path == "/…"
            found.append(
                AccessEntry(
                    f"https://{host}{path}{suffix}",
                    "https",
                    host,
                    443,
                    path.removesuffix("…"),
                    bool(path),
                    binding,
                    "gates of stack web" if stack else "everyone" if is_open else "203.0.113.0/24, 2001:db8:42::/48",
                    is_open,
                    ("not read: IPRestriction",) if place % 50 == 0 else (),
                    () if stack else (f"HTTPSEdge/shop-{place}", f"HTTPSEdgeRoute/shop-{place}"),
                    stack,
                )
            )
    opener = "TunnelCredential/ci"
    words = "any endpoint, address and label"
    found.append(
        AccessEntry(f"what {opener} may open", "bind", opener, 0, "", False, "credential", words, True, (), (opener,))
    )
    return found
