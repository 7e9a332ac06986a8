"""Every module of a way in is a gate, or is known to be none; every kind declares its access."""

from __future__ import annotations

from reconciler import kinds
from reconciler.access.modules import MODULES
from reconciler.model.access import PathOf, WayIn

# Kinds that decide about no traffic: who owns or signs what, secrets, events, and files.
NO_ACCESS = {
    "APIKey",
    "AgentConfig",
    "BotUser",
    "EventDestination",
    "EventSource",
    "EventSubscription",
    "SSHCertificateAuthority",
    "SSHHostCertificate",
    "SSHUserCertificate",
    "Secret",
    "TLSCertificate",
    "Vault",
}


def test_the_table_of_gates_has_each_module_of_a_way_in() -> None:
    ways = [kind for kind in kinds.every() if isinstance(kind.access, WayIn | PathOf)]
    assert MODULES.keys() == {field.name for kind in ways for field in kind.fields if field.module}


def test_a_new_kind_declares_its_access() -> None:
    silent = {kind.name for kind in kinds.declarable() if kind.access is None}
    assert silent == NO_ACCESS
