"""The reference gateway: answers which requests pass through an account, by simulating the platform naively.

It was written from documentation, and shares no code with the product. Input: an account, a `dict` from the name of a
kind to its live objects as the platform lists them. Routes are read from `HTTPSEdgeRoute` (`edge_id`), not from the
edges that embed them; rules of IP policies from `IPPolicyRule` (`ip_policy.id`).

Outcomes of a request:

- `pass`: it reaches an upstream (of an agent, a tunnel group or a static backend), or an answer that the owner of the
  account wrote: the action custom-response, the action redirect, an HTTP-response backend. Answers of the platform (a
  login page, the redirect of plain http to an https edge, an error) are no such answers.
- `refuse`: anything else.
- `unknown`: it depends on what the account does not show, such as a computed target of forward-internal, the value of
  an expression without an assignment, or a setting with `${…}`.

Several outcomes are possible where several objects may serve a request: the members of a pool, the children of a
weighted or failover backend, an agent's endpoint that may be offline and the wildcard that then takes over, a tunnel
group with and without agents. `answers` returns all of them, and `answer` the union: pass if one passes, else unknown
if one is unknown.

A request to an internal endpoint (`binding="internal"`) is one that some endpoint forwards to it: only the gates of the
internal endpoint itself apply. What reaches it from outside is shown by requests to the endpoints that forward to it.

Where the documentation is silent or contradicts itself, the gateway takes the choice of `OPEN_ROWS`, and the answer
names the rows on which it rests.
"""

from __future__ import annotations

from dataclasses import replace

from tests.access.gateway.addresses import unmap
from tests.access.gateway.credentials import may_bind, may_open
from tests.access.gateway.index import Index, list_expressions
from tests.access.gateway.messages import Answer, BindRequest, PlaneRequest, Request
from tests.access.gateway.servers import Account
from tests.access.gateway.simulation import Simulation
from tests.access.gateway.state import Answers, State, admit, unite

_PLANE_CODES = {"api": "220", "dashboard": "1212", "agent": "115", "endpoints": "3205"}


class Gateway:
    """The platform with one account. Policies and networks are parsed once."""

    def __init__(self, account: Account) -> None:
        self.account = account
        self.index = Index(account)

    def answer(self, request: Request | BindRequest | PlaneRequest) -> Answer:
        """The union of all possible outcomes, with the open rows on which it rests."""
        if isinstance(request, BindRequest):
            return may_bind(self.account, request)
        answer = self._answer(request)
        if (plain := unmap(request.source)) is None:
            return answer
        other = self._answer(replace(request, source=plain))
        rows = answer.open_rows | (other.open_rows if other.outcome == answer.outcome else {"mapped-address"})
        return replace(answer, open_rows=rows)

    def _answer(self, request: Request | PlaneRequest) -> Answer:
        return self.answer_plane(request) if isinstance(request, PlaneRequest) else unite(self.answers(request))

    def answers(self, request: Request) -> Answers:
        """Each possible outcome of a request, without duplicates."""
        return list(dict.fromkeys(Simulation(self.index, request).run()))

    def answer_plane(self, request: PlaneRequest) -> Answer:
        """Whether a source address may use the API, the dashboard, agent sessions, or public endpoints at all."""
        restriction = self.index.restrictions.get(request.plane)
        if restriction is None:
            return Answer("pass", "no enforced restriction")
        gate = self.index.restrict(restriction["ip_policies"], request.source, State())
        if isinstance(gate, State):
            return admit(gate, "the restriction admits the address", restriction["id"])
        return replace(gate, code=_PLANE_CODES[request.plane], served_by=restriction["id"])

    def may_open(self, bind: BindRequest) -> Answer:
        """Whether the credential may bind the name, and the account has reserved it."""
        return may_open(self.account, bind)

    def expressions(self) -> frozenset[str]:
        """The keys of all expressions in the traffic policies of the account, for `assignments` of requests."""
        return list_expressions(self.account)
