"""One use of a component: the name that precedes those of its resources, and where it stands."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct
from msgspec.structs import replace

from reconciler.model.problem import Position, Problem


class Scope(Struct, frozen=True, eq=False):
    """One use of a component. Two uses are never equal: each has names of its own.

    name       of the instance, with those of the uses around it: `shop` or `shop-admin`
    component  name of the component
    file       of the component, relative to the project's root
    position   of the use
    former     names that the instance had before
    outer      the use that this one is a part of
    """

    name: str
    component: str
    file: str
    position: Position
    former: tuple[str, ...] = ()
    outer: Scope | None = None

    def chain(self) -> Iterator[Scope]:
        """Yields this use and those around it, from the innermost."""
        here: Scope | None = self
        while here is not None:
            yield here
            here = here.outer

    def qualify(self, name: str) -> str:
        """The name of a resource that the component calls `name`."""
        return f"{self.name}-{name}"

    def describe(self) -> str:
        """`component service, used in manifests/shop.yaml:1:1`"""
        uses = " and ".join(f"used in {use.position}" for use in self.chain())
        return f"component {self.component}, {uses}"


def name_use(problem: Problem, scope: Scope | None) -> Problem:
    """The problem, naming the use if its position is in the component's file: that may be used many times."""
    if scope is None or problem.position is None or problem.position.file != scope.file:
        return problem
    note = f" ({scope.describe()})"
    return problem if note in problem.text else replace(problem, text=f"{problem.text}{note}")
