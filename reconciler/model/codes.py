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
    "literal-secret": Code("A secret is written in plain text in a YAML file.", True),
    "secret-name-shown": Code("A variable named like a secret is used in a field that plans and reports show.", True),
    "from-env-shown": Code("A value from the environment is in a field that plans and reports show."),
    "one-time-secret-undelivered": Code("A resource cannot be created because its one-time secret has no sink."),
    # manifests
    "module-without-effect": Code("A module has no effect on traffic that is encrypted up to the upstream.", True),
    "no-manifests": Code("A path under manifests: contains no manifests.", True),
    "policy-expression-source": Code("{ref: …}, {from_env: …} or {from_file: …} inside a traffic policy.", True),
    "retired-kind": Code("The platform no longer accepts new resources of this kind."),
    "shared-delivery-target": Code("Several environments deliver a one-time secret to the same target."),
    # what this version does not know
    "unknown-binding": Code("A binding is not known to this version."),
    "unknown-event-type": Code("An event type is not known to this version."),
    "unknown-provider": Code("A webhook provider is not known to this version."),
    "unreadable-interpolation": Code("Text in a traffic policy looks like an interpolation but cannot be parsed."),
    # traffic policies: an error where it is surely wrong, a warning where this version does not know
    "traffic-action": Code("A type of action in a traffic policy is not known to this version."),
    "traffic-function": Code("An expression of a traffic policy calls a function that is not known to this version."),
    "traffic-member": Code("An interpolation names a member that a variable does not have.", True),
    "traffic-method": Code("An expression of a traffic policy calls a method that is not known to this version."),
    "traffic-phase": Code("A phase, or an action in this phase, is not known to this version."),
    "traffic-renamed": Code("A traffic policy uses a name of the platform's earlier documentation.", True),
    "traffic-rules": Code("A phase of a traffic policy holds one rule instead of a list of rules.", True),
    "traffic-setting": Code("A setting of an action is not known to this version."),
    "traffic-types": Code("An expression compares values that the platform may refuse to compare."),
    "traffic-unchecked": Code("An expression of a traffic policy could not be checked."),
    "traffic-value": Code("A value of a setting is not known to this version."),
    "traffic-variable": Code("An expression of a traffic policy names a variable that is not known to this version."),
    # plans and drift
    "additions-unknown": Code("A list broke off, so it is unknown whether children of an owned object were added."),
    "known-drift-expired": Code("An entry of drift.ignore is past its date and hides nothing."),
    "known-drift-unmatched": Code("An entry of drift.ignore, or an --ignore, matches no difference."),
    "delivered-file-gone": Code("A note: a file to which a one-time secret was delivered is gone from this machine."),
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
