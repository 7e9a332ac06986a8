"""The code of every warning: what it means, and whether `validate --strict` fails on it.

A code never changes once it is released: scripts and code scanners refer to it. `--strict` fails on literal secrets and
on certain mistakes. It never fails on what this version does not know: a newer platform may accept that.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Code:
    """`is_strict`: `validate --strict` fails on a warning with this code."""

    meaning: str
    is_strict: bool = False


CODES: Final = {
    # secrets
    "from-env-shown": Code("A value from the environment is in a field that plans and reports show."),
    "one-time-secret-undelivered": Code("A resource cannot be created because its one-time secret has no sink."),
    # manifests
    "module-without-effect": Code("A module has no effect on traffic that is encrypted up to the upstream.", True),
    "no-manifests": Code("A path under manifests: contains no manifests.", True),
    "policy-expression-source": Code("{ref: …}, {from_env: …} or {from_file: …} inside a traffic policy.", True),
    "retired-kind": Code("The platform no longer accepts new resources of this kind."),
    # what this version does not know
    "unknown-binding": Code("A binding is not known to this version."),
    "unknown-event-type": Code("An event type is not known to this version."),
    "unknown-in-policy": Code(
        "A phase, action, variable or function of a traffic policy is not known to this version."
    ),
    "unknown-provider": Code("A webhook provider is not known to this version."),
    "unreadable-interpolation": Code("Text in a traffic policy looks like an interpolation but cannot be parsed."),
    # plans
    "delete-includes-children": Code("The platform deletes other objects together with this one."),
    "dependency-cannot-be-planned": Code("A resource waits for another one that cannot be planned."),
    "kind-not-listed": Code("Objects of a kind could not be listed completely, so none is deleted."),
    "kind-not-readable": Code("The API key may not read some kinds."),
    "planned-from-snapshot": Code("The plan was made from a snapshot file, not from the account."),
    "still-in-use": Code("An object that will be deleted is still referenced; the platform will refuse."),
    # project policies
    "policy": Code("A policy of the project with severity: warning is not met."),
}


def is_strict(code: str) -> bool:
    """Whether `validate --strict` fails on a warning with this code."""
    found = CODES.get(code)
    return found is not None and found.is_strict
