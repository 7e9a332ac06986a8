"""Traffic policies as programs: the rules of the phases that a request goes through, one step after the other."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

import yaml

from tests.access.gateway.messages import expression_key

CONNECT, REQUEST, RESPONSE = "on_tcp_connect", "on_http_request", "on_http_response"

REWRITES: Final = frozenset(
    {"url-rewrite", "add-headers", "remove-headers", "request-body-find-replace", "set-vars", "http-request"}
)
"""Actions after which an expression of the same text may have another value."""

NO_GATES: Final = REWRITES | {
    "circuit-breaker",
    "compress-response",
    "log",
    "owasp-crs-request",
    "owasp-crs-response",
    "rate-limit",
    "response-body-find-replace",
    "sse-find-replace",
}
"""Actions that decide on nobody's access: what they refuse, they refuse for a while or for its content."""


@dataclass(frozen=True, slots=True)
class Test:
    """The beginning of a rule. If an expression is false, the program continues at the step `skip`."""

    __test__ = False
    expressions: tuple[str, ...]
    skip: int


@dataclass(frozen=True, slots=True)
class Act:
    """An action. `text` identifies it among the actions that rewrite the request. `at_connection`: it runs before a
    request is read, so that it refuses by closing the connection."""

    type: str
    config: Mapping[str, Any]
    text: str
    at_connection: bool = False


@dataclass(frozen=True, slots=True)
class Program:
    """The steps before the upstream, and the settings of each restrict-ips behind it. `error`: why it is unreadable."""

    steps: tuple[Test | Act, ...] = ()
    responses: tuple[Mapping[str, Any], ...] = ()
    error: str = ""

    def expressions(self, rewrites: tuple[str, ...] = ()) -> Iterator[str]:
        """The keys of all expressions: their texts, and those behind all actions that rewrite the request.
        `rewrites`: before the policy."""
        for step in self.steps:
            if isinstance(step, Act):
                rewrites += (step.text,) if step.type in REWRITES else ()
                continue
            yield from step.expressions
            if rewrites:
                yield from (expression_key(text, rewrites) for text in step.expressions)


@lru_cache(65536)
def compile_policy(text: str | None, phases: tuple[str, ...]) -> Program:
    """The program of a policy, from JSON or YAML text, for these phases in their order."""
    if not text:
        return Program()
    try:
        document = _load(text)
        return _compile(document, phases)
    except (AttributeError, KeyError, TypeError, ValueError, yaml.YAMLError) as error:
        return Program(error=f"the traffic policy cannot be read: {error!r}")


def _compile(document: Mapping[str, Any], phases: tuple[str, ...]) -> Program:
    if unknown := document.keys() - {CONNECT, REQUEST, RESPONSE, "on_event_stream_message"}:
        return Program(error=f"the traffic policy has unknown phases: {', '.join(sorted(map(str, unknown)))}")
    steps: list[Test | Act] = []
    for phase in phases:
        for rule in document.get(phase) or ():
            actions = [_read_action(action, phase) for action in rule["actions"]]
            expressions = tuple(rule.get("expressions") or ())
            steps += [Test(expressions, len(steps) + 1 + len(actions)), *actions]
    responses = tuple(
        action.get("config") or {}
        for rule in document.get(RESPONSE) or ()
        for action in rule["actions"]
        if action["type"] == "restrict-ips"
    )
    return Program(tuple(steps), responses)


def _load(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return yaml.load(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))  # noqa: S506 - both are safe


def _read_action(action: Mapping[str, Any], phase: str) -> Act:
    return Act(action["type"], action.get("config") or {}, json.dumps(action, sort_keys=True), phase == CONNECT)


def is_interpolated(value: Any) -> bool:
    """Whether a setting holds `${…}` anywhere."""
    return "${" in json.dumps(value)
