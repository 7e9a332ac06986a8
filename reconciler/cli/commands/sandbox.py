"""`reconciler sandbox`: the stand-in of the platform, and its description as OpenAPI."""

from __future__ import annotations

import errno
import math
import sqlite3
from pathlib import Path

import click
from click.core import ParameterSource

from reconciler.cli.terminal import exit_codes, output
from reconciler.cli.terminal.group import Command, Group

_LONGEST = 3_600_000  # milliseconds of latency: an hour, beyond which nobody waits


def _text(context: click.Context, parameter: click.Parameter, value: str) -> str:
    if not value.strip():
        raise click.BadParameter("is empty")
    return value


def _number(context: click.Context, parameter: click.Parameter, value: float) -> float:
    if math.isnan(value):  # which no range keeps out
        raise click.BadParameter("is not a number")
    return value


@click.group(
    cls=Group,
    name="sandbox",
    invoke_without_command=True,
    examples="""
        reconciler sandbox --port 8080
        reconciler sandbox --port 0 --db sandbox.db --api-key secret
        reconciler sandbox --agent --agent-config secrets/agent.yml
        reconciler sandbox openapi > openapi.json
    """,
)
@click.option(
    "--host",
    metavar="ADDRESS",
    default="127.0.0.1",
    show_default=True,
    callback=_text,
    help="The address to listen on.",
)
@click.option(
    "--port",
    metavar="PORT",
    type=click.IntRange(0, 65535),
    default=0,
    show_default=True,
    help="The port; 0 picks a free one.",
)
@click.option("--db", metavar="FILE", default=":memory:", show_default=True, help="Where its objects are kept.")
@click.option(
    "--api-key", metavar="KEY", default="sandbox", show_default=True, callback=_text, help="The key it asks for."
)
@click.option(
    "--seed",
    metavar="FILE",
    multiple=True,
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help="Objects to begin with, as JSON; may be given several times.",
)
@click.option("--requests-per-minute", metavar="N", type=click.IntRange(1), help="Answer 429 beyond this budget.")
@click.option(
    "--latency",
    metavar="MS",
    type=click.FloatRange(0, _LONGEST),
    default=0.0,
    callback=_number,
    help="Milliseconds that each answer takes at least.",
)
@click.option(
    "--patch-empties",
    is_flag=True,
    help="Empty `backends` of failover and weighted backends when a PATCH leaves it out, as the public platform does.",
)
@click.option("--sparse", is_flag=True, help="Leave text fields that are not set out of responses.")
@click.option("--agent", is_flag=True, help="Run an agent beside it; the second line is the address of its API.")
@click.option(
    "--agent-port",
    metavar="PORT",
    type=click.IntRange(0, 65535),
    default=4040,
    show_default=True,
    help="The port of the agent's API; 0 picks a free one.",
)
@click.option(
    "--agent-config",
    metavar="FILE",
    multiple=True,
    type=click.Path(path_type=Path, dir_okay=False),
    help="A configuration file for the agent, read when it starts; may be given several times.",
)
@click.pass_context
def command(
    context: click.Context,
    host: str,
    port: int,
    db: str,
    api_key: str,
    seed: tuple[Path, ...],
    requests_per_minute: int | None,
    latency: float,
    patch_empties: bool,
    sparse: bool,
    agent: bool,
    agent_port: int,
    agent_config: tuple[Path, ...],
) -> int:
    """Run a stand-in of the platform until interrupted; the first line of its output is its address."""
    if context.invoked_subcommand is not None:
        return exit_codes.DONE
    for option in () if agent else ("agent_port", "agent_config"):
        if context.get_parameter_source(option) is not ParameterSource.DEFAULT:
            raise click.UsageError(f"--{option.replace('_', '-')} is for an agent; add --agent")
    from reconciler.sandbox.base.variants import Variants
    from reconciler.sandbox.server.process import serve

    try:
        serve(
            host,
            port,
            db,
            api_key,
            seed,
            requests_per_minute=requests_per_minute,
            latency=latency / 1000,
            agent_port=agent_port if agent else None,
            agent_configs=agent_config,
            variants=Variants(patch_empties=patch_empties, sparse=sparse),
        )
    except ValueError as error:
        raise exit_codes.Stop(exit_codes.ERROR, f"error: {error}") from error
    except OSError as error:
        if error.errno != errno.EADDRINUSE:
            raise
        wanted = f"port {port}, or the agent's port {agent_port}," if agent else f"port {port}"
        raise exit_codes.Stop(exit_codes.ERROR, f"error: {wanted} is in use already; 0 picks a free one") from error
    except sqlite3.Error as error:
        raise exit_codes.Stop(exit_codes.ERROR, f"error: {db}: {error}") from error
    return exit_codes.DONE


@command.command(
    cls=Command,
    examples="""
        reconciler sandbox openapi > openapi.json
    """,
)
def openapi() -> int:
    """Print the OpenAPI description of what the stand-in serves."""
    import json

    from reconciler.kinds import read_only
    from reconciler.sandbox.operations.routes import operations
    from reconciler.sandbox.wire.openapi import document

    output.print_result(json.dumps(document(operations(read_only.list_served()), "http://127.0.0.1"), indent=2))
    return exit_codes.DONE
