"""Reads the dependencies between declared resources."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec.structs import replace

from reconciler import kinds
from reconciler.model.address import Address
from reconciler.operations.opening.source import ProjectSource, read_project
from reconciler.planning.comparing.name_references import resolve_names
from reconciler.planning.ordering import dependencies


def read_dependencies(source: ProjectSource) -> Mapping[Address, tuple[Address, ...]]:
    """The addresses that each declared resource depends on. Sends no request; raises InvalidProject."""
    _, loaded = read_project(source)
    catalogue = {kind.name: kind for kind in kinds.list_planned()}
    hosts: dependencies.HostIndex[Address] = dependencies.HostIndex()
    for address, declaration in loaded.manifest.declarations.items():
        if host := catalogue[address.kind].host:
            hosts.add(declaration.spec.get(host), address)
    declared = {**loaded.manifest.declarations, **resolve_names(loaded.manifest.declarations, catalogue)}
    return dependencies.find_dependencies(replace(loaded.manifest, declarations=declared), catalogue, hosts)
