"""Finds all mutants of the source, and draws a random sample of them."""

from __future__ import annotations

import ast
import hashlib
import random
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from itertools import islice
from pathlib import Path
from typing import Any

from cosmic_ray.ast import get_ast
from cosmic_ray.ast.ast_query import ASTQuery
from cosmic_ray.mutating import mutate_code
from cosmic_ray.plugins import get_operator, operator_names
from cosmic_ray.work_item import MutationSpec, WorkItem

from tests.mutation import planting
from tests.mutation.operators import OWN

Place = tuple[int, int]  # line and column

UNCHANGED_LEAVES = {"name", "string", "newline", "endmarker", "fstring_start", "fstring_string", "fstring_end"}


@cache
def load_operators() -> dict[str, Any]:
    """Each operator by its name: those of cosmic-ray that need no argument, and our own."""
    operators = {name: get_operator(name) for name in operator_names()}
    return {name: operator() for name, operator in (operators | OWN).items() if not operator.arguments()}


def find_mutants(source: str, path: Path) -> dict[Place, list[MutationSpec]]:
    """All mutants of a file by the place that they change.

    Annotations are left out: with postponed evaluation (PEP 563) nothing evaluates them, except in pydantic models.
    """
    found: dict[Place, list[MutationSpec]] = defaultdict(list)
    occurrences: dict[str, int] = defaultdict(int)
    for node, is_annotation in _walk(get_ast(source), is_annotation=False):
        if node.type in UNCHANGED_LEAVES:
            continue
        for name, operator in load_operators().items():
            for start, end in operator.mutation_positions(node):
                occurrence = occurrences[name]
                occurrences[name] += 1
                if not is_annotation and start < end:
                    found[start].append(
                        MutationSpec(
                            module_path=path,
                            operator_name=name,
                            occurrence=occurrence,
                            start_pos=start,
                            end_pos=end,
                            definition_name=ASTQuery(node).get_definition_name(),
                        )
                    )
    return found


def _walk(node: Any, is_annotation: bool) -> Iterator[tuple[Any, bool]]:
    """In the order of cosmic-ray, which numbers the occurrences of an operator."""
    yield node, is_annotation
    children = getattr(node, "children", ())
    for place, child in enumerate(children):
        before = children[place - 1] if place else None
        sign = {"annassign": ":", "tfpdef": ":", "funcdef": "->"}.get(node.type)
        starts = sign is not None and before is not None and getattr(before, "value", None) == sign
        yield from _walk(child, is_annotation or starts)


def mutate(source: str, mutant: MutationSpec) -> str | None:
    """The source with the mutant in it. None if that is no program, or one that runs the same instructions."""
    if mutant.operator_name.startswith(planting.PREFIX):
        return planting.plant(source, mutant.operator_name)
    line, column = mutant.start_pos
    if source.splitlines()[line - 1].startswith("TYPE_CHECKING", column):  # is false whenever the program runs
        return None
    try:
        mutated: str | None = mutate_code(source, load_operators()[mutant.operator_name], mutant.occurrence)
        return None if mutated is None or ast.dump(ast.parse(mutated)) == ast.dump(ast.parse(source)) else mutated
    except (SyntaxError, AttributeError):  # the latter: cosmic-ray cannot replace a dotted name in `except (a.B, C)`
        return None


def draw_sample(
    population: Mapping[str, Sequence[Sequence[MutationSpec]]],
    count: int,
    seed: str,
    is_program: Callable[[MutationSpec], bool],
) -> dict[str, list[WorkItem]]:
    """Mutants of each package, whose number is in proportion to the package's places. A place is mutated at most once.

    With a larger count, the sample of a package begins with the same mutants.
    """
    total = sum(map(len, population.values())) or 1
    sample = {}
    for package, places in population.items():
        chance = random.Random(f"{seed} {package}")
        order = list(places)
        chance.shuffle(order)
        chosen = (chance.choice(variants) for variants in order)
        share = -(-count * len(places) // total)
        sample[package] = [
            WorkItem.single(name_job(mutant), mutant) for mutant in islice(filter(is_program, chosen), share)
        ]
    return sample


def name_job(mutant: MutationSpec) -> str:
    text = f"{mutant.module_path.as_posix()} {mutant.operator_name} {mutant.occurrence}"
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def survey(root: Path, packages: Iterable[str]) -> dict[str, list[list[MutationSpec]]]:
    """The places of each package (a folder or a file below the root) with their mutants, in the order of the source."""
    population = {}
    for package in packages:
        files = [root / package] if package.endswith(".py") else sorted((root / package).rglob("*.py"))
        population[package] = [
            mutants
            for file in files
            for _, mutants in sorted(find_mutants(file.read_text(), file.relative_to(root)).items())
        ]
    return population
