"""JSON Schema of `tests/access.yaml`, for editors. `validate` also checks addresses, URLs and environments."""

from __future__ import annotations

from reconciler.access.destinations import BINDINGS
from reconciler.access.people import PROVIDERS
from reconciler.model.access_test import ATTRIBUTES, METHODS, MOST_VALUES, Expected
from reconciler.rendering.schemas.manifest import DIALECT, Schema

_NAME: Schema = {"type": "string", "minLength": 1, "maxLength": 1_000}


def access_tests_schema() -> Schema:
    """The schema of a file: a list of tests."""
    return {
        "$schema": DIALECT,
        "title": "Access tests",
        "description": "Requests, and whether each is expected to get through.",
        "type": ["array", "null"],
        "items": {
            "type": "object",
            "additionalProperties": False,
            "required": ["from", "to", "expect"],
            "properties": _properties(),
        },
    }


def _properties() -> dict[str, Schema]:
    return {
        "from": _texts(
            "An address, a network in CIDR notation, or a list of them. The outcome must be the same for all."
        ),
        "to": _texts("A URL with one host, a part of the account (api, dashboard, agent), or a list of them."),
        "with": {
            "description": "What the request has besides its source and its destination.",
            "anyOf": [_caller(), {"type": "null"}],
        },
        "binding": {"enum": list(BINDINGS), "description": "From where the URL is requested. Default: public."},
        "expect": {
            "enum": [str(expected) for expected in Expected],
            "description": "allow: gets through; deny: is refused; unknown: an expression or unknown fact decides.",
        },
        "severity": {
            "enum": ["error", "warning"],
            "description": "error: a failure blocks the plan; warning: it is only reported. Default: error.",
        },
        "env": {**_NAME, "description": "The environment in which the test is run; without it, all of them."},
    }


def _texts(description: str) -> Schema:
    one: Schema = {"type": "string"}
    many: Schema = {"type": "array", "items": one, "minItems": 1, "maxItems": MOST_VALUES}
    return {"description": description, "anyOf": [one, many]}


def _caller() -> Schema:
    return {
        "type": "object",
        "additionalProperties": False,
        "properties": {
            "method": {"enum": list(METHODS), "description": "GET stands for all methods but OPTIONS. Default: GET."},
            "client_certificate": {**_NAME, "description": "The name of the CertificateAuthority that signed it."},
            "signed_in": {
                **_NAME,
                "anyOf": [{"enum": list(PROVIDERS)}, {"pattern": "^https?://."}],
                "description": "A provider such as google, or the URL of an issuer.",
            },
            **{
                name: {**_NAME, "description": f"The {name} of the person who is signed in; one of these at most."}
                for name in ATTRIBUTES
            },
            "token": {
                "type": "boolean",
                "description": "Whether it has whatever token, password or signature an entry point asks for.",
            },
        },
    }
