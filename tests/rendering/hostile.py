"""Plans with foreign text in every value, for outputs that must escape it."""

from __future__ import annotations

import re

from hypothesis import strategies as st

from reconciler.model.change import Action, Change, ChangedBy, FieldChange, Order, Reason, Risk
from reconciler.model.plan import Approval, Call, Forecast, Plan, Verb
from reconciler.model.problem import Position, Problem, Severity
from tests.rendering.plans import OFFICE, PAYMENTS, addresses

PIECES = (
    *("`", "```", "````", "~~~", "\n", "\n\n", "\r", " ", "    ", "\t", "é", "x", "%0A", "%", ",", ":", '"', "'", "\\"),
    *("-->", "<!--", "</details>", "</summary>", "</code>", "<script>", "</script>", "<img src=x onerror=alert(1)>"),
    *(
        "]]>",
        "&lt;",
        "&#64;all",
        "@all",
        "@octo/team",
        "#1",
        "!2",
        "~bug",
        "**b**",
        "_i_",
        "$`x`$",
        "{{ 7*7 }}",
        "{% x %}",
    ),
    *("[x](http://evil.example)", "![x](http://evil.example/x.png)", "<http://evil.example>", "http://evil.example"),
    *("| a | b |", "\n| --- |", "# heading", "\n===", "- item", "1. item", "> quote", "\" onclick='x'", "javascript:x"),
    *("::error::x", "##[error]x", "\x1b[31m", "\u202e", "\u2028"),
)

texts = st.lists(st.sampled_from(PIECES), max_size=8).map("".join)


def harmless(text: str) -> str:
    """A text with as many lines and characters, without special ones."""
    return re.sub(r"[^\n]", "x", text)


def plan(text: str) -> Plan:
    """The text in every value from Git or the platform."""
    place = Position(f"manifests/{text}.yaml".replace("\n", "x"), 3, 1)
    fields = (
        FieldChange("description", text, f"{text}!", ChangedBy.PLATFORM, position=place),
        FieldChange(f"labels.{text}", None, text, ChangedBy.GIT),
        FieldChange("traffic_policy.value", f"a\n{text}\nb", f"a\n{text}\nc", ChangedBy.BOTH, forces_replacement=True),
    )
    return Plan(
        "prod",
        changes=(
            Change(OFFICE, Action.CREATE, Reason.DECLARED, fields=fields[1:2], position=place),
            Change(PAYMENTS, Action.REPLACE, Reason.IMMUTABLE, id=text, fields=fields, order=Order.CREATE_FIRST,
                   risks=(Risk.INTERRUPTS_TRAFFIC, Risk.IRREVERSIBLE), protected=True, position=place),
        ),
        calls=(
            Call("create IPPolicy/office", OFFICE, Verb.CREATE, "/ip_policies"),
            Call("x", PAYMENTS, Verb.UPDATE, f"/edges/tls/{text}", needs=("create IPPolicy/office",)),
        ),
        problems=(
            Problem(text, text, text, place, code=text, values={text: text}),
            Problem(text, severity=Severity.WARNING, code=text),
        ),
        approvals=(Approval("delete", "TLSEdge", 1, text), Approval("adopt", "BotUser", 1, text, granted=True)),
        account=f"http://{text}",
        commit=text,
        targets=(f"*/{text}",),
        excludes=(f"{text}/*",),
        forecast=Forecast(2, 0.0),
    )  # fmt: skip


many = st.builds(
    lambda names, text, risks: Plan(
        "prod",
        changes=tuple(
            Change(
                name,
                Action.UPDATE,
                Reason.FIELDS,
                id=text,
                fields=(FieldChange("description", text, text * 3), FieldChange("value", None, f"{text}\n" * 30)),
                risks=(Risk.ISSUES_CREDENTIAL,) if risks else (),
            )
            for name in names
        ),
        calls=tuple(Call(str(name), name, Verb.UPDATE, f"/{text}") for name in names),
        problems=tuple(Problem(text * 5, code=text) for _ in names),
        approvals=tuple(Approval("delete", "TLSEdge", 1, text * 5) for _ in names),
        targets=tuple(str(name) for name in names),
    ),
    st.lists(addresses, max_size=150, unique=True),
    texts,
    st.booleans(),
)
