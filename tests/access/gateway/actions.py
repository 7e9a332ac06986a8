"""Traffic policies: what each action does with a request."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from tests.access.gateway import logins
from tests.access.gateway.addresses import Rule, parse_network
from tests.access.gateway.index import Index
from tests.access.gateway.messages import HTTP, Answer, Request, expression_key
from tests.access.gateway.policies import NO_GATES, REWRITES, Act, Program, Test, is_interpolated
from tests.access.gateway.servers import Key, split_url
from tests.access.gateway.state import Answers, Gate, State, Then, admit, refuse

CERTAIN_FORWARDS = 3
MOST_FORWARDS = 20
_FAILS = "an expression fails at run time"


class PolicyRun(ABC):
    """A request in the traffic policies that it meets."""

    def __init__(self, index: Index, request: Request) -> None:
        self.index = index
        self.request = request

    @abstractmethod
    def find_host(self, key: Key, state: State, offline: Then) -> Answers:
        """What an internal host answers; `offline` is what happens if nothing serves it."""

    def run_policy(self, program: Program, holder: str, state: State, then: Then) -> Answers:
        """Runs a policy; `then` is what happens to a request that falls through."""
        if program.error:
            return [Answer("unknown", program.error, served_by=holder, open_rows=state.rows)]

        def fall_through(state: State) -> Answers:
            return then(self.restrict_responses(program, state))

        return self.run_steps(program, 0, holder, state, fall_through)

    def restrict_responses(self, program: Program, state: State) -> State:
        for config in program.responses:
            if not isinstance(gate := self.restrict_ips(config, state), State) or gate.doubt != state.doubt:
                state = state.touch("restrict-ips-in-response")
        return state

    def run_steps(self, program: Program, at: int, holder: str, state: State, then: Then) -> Answers:
        while at < len(program.steps):
            step = program.steps[at]
            at += 1
            if isinstance(step, Test):
                verdict = self.holds(step, state)
                if isinstance(verdict, str):
                    if verdict == _FAILS:
                        return [refuse(state.touch("expression-error"), verdict, by=holder)]
                    return [Answer("unknown", verdict, served_by=holder, open_rows=state.rows)]
                at = at if verdict else step.skip
                continue

            def resume(state: State, at: int = at) -> Answers:
                return self.run_steps(program, at, holder, state, then)

            if step.type == "forward-internal":
                return self.forward(step.config, holder, state, resume)
            if step.type == "restrict-ips" and state.forwards:
                behind = resume(state)
                if all(answer.outcome == "refuse" and not answer.open_outcome for answer in behind):
                    return behind  # whatever address the target sees
            if step.type == "redirect":
                if self.redirects(step.config):
                    return self.redirect(step.config, holder, state, resume, then)
                continue
            gate = self.act(step, holder, state)
            if isinstance(gate, Answer):
                return [replace(gate, status=None) if step.at_connection else gate]
            state = gate
        return then(state)

    def holds(self, test: Test, state: State) -> bool | str:
        """Whether all expressions of a rule are true, or why that is unknown."""
        values = [self.value(expression, state) for expression in test.expressions]
        if any(value is False for value in values):
            return False
        return next((value for value in values if isinstance(value, str)), True)

    def value(self, expression: str, state: State) -> bool | str:
        assignments = self.request.assignments
        for key in (expression_key(expression, state.rewrites), expression):
            if key in assignments:
                value = assignments[key]
                return _FAILS if value is None else value
        return f"no value for the expression {expression}"

    def act(self, step: Act, holder: str, state: State) -> Gate:
        config = step.config
        match step.type:
            case "deny":
                return refuse(state, "denied", int(config.get("status_code", 403)), by=holder)
            case "close-connection":
                return refuse(state, "the connection is closed", by=holder)
            case "custom-response":
                return admit(state, "a custom response", holder, int(config.get("status_code", 200)))
            case "restrict-ips":
                gate = self.restrict_ips(config, state)
            case "terminate-tls":
                gate = self.terminate_tls(config, state)
            case "basic-auth":
                gate = self.basic(config, state)
            case "jwt-validation":
                gate = self.validate_tokens(config, state)
            case "verify-webhook":
                is_open = config.get("enforce", True) is False or is_signed(self.request, config)
                gate = state if is_open else refuse(state, "not signed by the webhook provider", 403, "3204")
            case "oauth" | "openid-connect":
                gate = self.login(step, state)
            case kind if kind in NO_GATES:
                gate = self.rewrite(step, state)
            case kind:
                return Answer("unknown", f"the action {kind} is not documented", served_by=holder, open_rows=state.rows)
        return gate if isinstance(gate, State) else replace(gate, served_by=holder)

    def rewrite(self, step: Act, state: State) -> State:
        if step.type == "http-request" and step.config.get("on_error") == "halt":
            state = state.touch("halt-of-http-request")
        return replace(state, rewrites=(*state.rewrites, step.text)) if step.type in REWRITES else state

    def restrict_ips(self, config: Mapping[str, Any], state: State) -> Gate:
        if config.get("enforce", True) is False:
            return state
        if state.forwards:
            state = state.touch("address-behind-forward")
        allow, deny = config.get("allow") or [], config.get("deny") or []
        if is_interpolated([allow, deny]):
            return state.doubts("interpolated-setting", "restrict-ips with networks that are computed")
        rules = [Rule(parse_network(cidr), cidrs is allow) for cidrs in (allow, deny) for cidr in cidrs]
        return self.index.restrict_by(config.get("ip_policies") or [], rules, self.request.source, state)

    def terminate_tls(self, config: Mapping[str, Any], state: State) -> Gate:
        authorities = config.get("mutual_tls_certificate_authorities") or []
        if not authorities:
            return state.touch("no-authorities") if "mutual_tls_certificate_authorities" in config else state
        strategy = config.get("mutual_tls_verification_strategy", "require-and-verify")
        known = {self.index.authorities.get(text.strip(), text.strip()) for text in authorities}
        if strategy == "request" or (self.request.certificate or "").strip() in known:
            return state
        if strategy == "require-any":
            return state.touch("unverified-strategy")
        if is_interpolated(authorities):
            return state.doubts("interpolated-setting", "terminate-tls with authorities that are computed")
        return refuse(state, "no client certificate of a listed authority", code="bad_certificate")

    def basic(self, config: Mapping[str, Any], state: State) -> Gate:
        credentials = config.get("credentials") or []
        if config.get("enforce", True) is False or self.request.basic in credentials:
            return state
        if is_interpolated(credentials):
            return state.doubts("interpolated-setting", "basic-auth with credentials that are computed")
        return refuse(state, "not a listed user and password", 401)

    def validate_tokens(self, config: Mapping[str, Any], state: State) -> Gate:
        verdict = logins.validate_tokens(config, self.request.tokens)
        if verdict is None:
            return state.doubts("interpolated-setting", "jwt-validation with settings that are computed")
        return state if verdict else refuse(state, "no valid token", 401, "3401")

    def login(self, step: Act, state: State) -> Gate:
        """A login by an action: any account of the provider or issuer. Later rules may narrow it."""
        request, config = self.request, step.config
        if config.get("allow_cors_preflight") and request.method == "OPTIONS":
            if request.header("origin") is not None and request.header("access-control-request-method") is not None:
                return state
            state = state.touch("preflight")
        if request.scheme in HTTP and request.path.startswith(("/ngrok/login", "/ngrok/logout")):
            return refuse(state.touch("reserved-paths"), "the path is reserved for logins", 302)
        kind, issuer = ("oauth", "provider") if step.type == "oauth" else ("oidc", "issuer_url")
        user = request.identity
        if user and (user.kind, user.issuer) == (kind, config[issuer]) and logins.is_of_application(config, user):
            return state
        return refuse(state, "not signed in", 302)

    def redirects(self, config: Mapping[str, Any]) -> bool:
        """Whether `from` matches the URL, and the URL changes."""
        url = f"{self.request.scheme}://{self.request.host}{self.request.path}"
        target = re.sub(r"\$(\d)", r"\\\1", config["to"].replace("\\", r"\\"))
        return is_interpolated(config) or re.sub(config.get("from") or "^.*$", target, url, count=1) != url

    def redirect(self, config: Mapping[str, Any], holder: str, state: State, resume: Then, then: Then) -> Answers:
        behind = then(state)
        if any(answer.outcome != "pass" and answer not in behind for answer in resume(state)):  # a later rule refuses
            state = state.touch("redirect-ends")
        if is_interpolated(config.get("from")):
            state = state.doubts("interpolated-setting", "redirect with a pattern that is computed")
        return [admit(state, "a redirect", holder, int(config.get("status_code", 302)))]

    def forward(self, config: Mapping[str, Any], holder: str, state: State, resume: Then) -> Answers:
        url, is_optional = config["url"], config.get("on_error") == "continue"
        if is_interpolated(url):
            rows = state.touch("dynamic-target").rows
            return [Answer("unknown", "the target is computed", served_by=holder, open_rows=rows)]
        scheme, host, port = split_url(url)
        key: Key = ("internal", scheme, port, host)
        here = state.forwards[-1][1] if state.forwards else self.request.scheme
        if scheme != here:
            if not {scheme, here} <= HTTP:
                return [refuse(state, "the target has another protocol", by=holder)]
            state = state.touch("forward-across-schemes")
        if key in state.forwards:
            return [refuse(state, "a circle of forward-internal", code="3603", by=holder)]
        if len(state.forwards) >= CERTAIN_FORWARDS:
            state = state.touch("forward-chain")
        if len(state.forwards) >= MOST_FORWARDS:
            return [Answer("unknown", "too many forwards", served_by=holder, open_rows=state.rows)]

        def offline(forwarded: State) -> Answers:
            if is_optional:
                return resume(replace(forwarded, forwards=state.forwards))
            return [refuse(forwarded, "the target is offline", code="3200", by=holder)]

        return self.find_host(key, replace(state, forwards=(*state.forwards, key)), offline)


def is_signed(request: Request, module: Mapping[str, Any]) -> bool:
    signature = request.webhook_signed_by
    provider, secret = module["provider"].lower(), module.get("secret") or ""
    return signature is not None and (signature.provider.lower(), signature.secret) == (provider, secret)
