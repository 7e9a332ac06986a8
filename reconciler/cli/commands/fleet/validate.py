"""`reconciler fleet validate`: checks the fleet file, its members and its projects, without network access."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import click

from reconciler.cli.fleets import options
from reconciler.cli.fleets.options import FleetOptions
from reconciler.cli.terminal import exit_codes, output
from reconciler.cli.terminal.group import Command
from reconciler.rendering.text_tools import count

if TYPE_CHECKING:
    from reconciler.model.fleet import Fleet


@click.command(
    cls=Command,
    examples="""
        reconciler fleet validate
        reconciler fleet validate --file fleets/eu.yaml
    """,
)
@options.file_options
def command(common: FleetOptions) -> int:
    """Check the fleet file, its members, and its projects with the members' variables.

    Needs no network access and no keys. A wrong value in many members is one problem with the first of them.
    """
    from reconciler.fleet.validate import validate_fleet

    validation = validate_fleet(*common.locate(), common.runtime)
    output.print_problems(validation.problems)
    if not validation.is_valid or validation.fleet is None:
        return exit_codes.ERROR
    if not common.quiet:
        output.print_result(f"Valid: {_summarize(validation.fleet)}")
    return exit_codes.DONE


def _summarize(fleet: Fleet) -> str:
    """`fleet shops: 800 members, 2 projects. Waves: canary 8, half 396, all 396.`"""
    from reconciler.project.fleets.waves import assign_waves

    members = count(len(fleet.members), "member")
    projects = count(len(fleet.projects), "project")
    places = Counter(assign_waves(fleet, list(fleet.members.values())).values())
    waves = ", ".join(f"{wave.name} {places[place]}" for place, wave in enumerate(fleet.waves))
    return f"fleet {fleet.name}: {members}, {projects}. Waves: {waves}."
