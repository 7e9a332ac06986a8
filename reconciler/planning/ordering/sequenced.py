"""What ordering a plan's calls answers. `sequence` orders them."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

from reconciler.model.address import Address
from reconciler.model.plan import Call
from reconciler.model.problem import Problem
from reconciler.model.snapshot import LiveKey
from reconciler.planning.deciding.decision import Decision


class Sequenced(NamedTuple):
    """The calls of a plan in order, with errors and warnings about them.

    deleted_with   live objects that no call deletes, and the address of the parent that they are deleted with
    """

    calls: tuple[Call, ...] = ()
    problems: tuple[Problem, ...] = ()
    deleted_with: Mapping[LiveKey, Address] = MappingProxyType({})


class Redecide(NamedTuple):
    """No order exists; try again with this decision instead of the one with its address."""

    decision: Decision
