"""`reconciler sandbox`: runs the local emulator of the platform, or prints its OpenAPI description."""

from __future__ import annotations

import errno
import math
import sqlite3
from pathlib import Path

import click
from click.core import ParameterSource

from reconciler.cli.terminal import exit_codes, output
from reconciler.cli.terminal.group import Command, Group

_MAX_LATENCY = 3_600_000  # milliseconds


def _text(context: click.Context, parameter: click.Parameter, value: str) -> str:
    if not value.strip():
        raise click.BadParameter("is empty")
    return value


def _number(context: click.Context, parameter: click.Parameter, value: float) -> float:
    if math.isnan(value):  # passes every range check
        raise click.BadParameter("is not a number")
    return value


@click.group(
    cls=Group,
    name="sandbox",
    invoke_without_command=True,
    examples="""
        reconciler sandbox --port 8080
        reconciler sandbox --port 0 --db sandbox.db --api-key secret
        reconciler sandbox --accounts 200 --requests-per-minute 120
        reconciler sandbox --agent --agent-config secrets/agent.yml
        reconciler sandbox --nameserver 127.0.0.1:5353
        reconciler sandbox openapi > openapi.json
    """,
)
@click.option(
    "--host",
    metavar="ADDRESS",
    default="127.0.0.1",
    show_default=True,
    callback=_text,
    help="Address to listen on.",
)
@click.option(
    "--port",
    metavar="PORT",
    type=click.IntRange(0, 65535),
    default=0,
    show_default=True,
    help="Port to listen on; 0 selects a free port.",
)
@click.option("--db", metavar="FILE", default=":memory:", show_default=True, help="SQLite file for the objects.")
@click.option(
    "--api-key", metavar="KEY", default="sandbox", show_default=True, callback=_text, help="API key to accept."
)
@click.option(
    "--seed",
    metavar="FILE",
    multiple=True,
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help="JSON file with initial objects (repeatable).",
)
@click.option(
    "--accounts",
    metavar="N|FILE",
    default="0",
    callback=_text,
    help="Serve more accounts: N with the API keys sandbox-0001, sandbox-0002, …, or those of a JSON or CSV file.",
)
@click.option(
    "--requests-per-minute",
    metavar="N",
    type=click.IntRange(1),
    help="Respond with 429 above this rate, for each account.",
)
@click.option(
    "--latency",
    metavar="MS",
    type=click.FloatRange(0, _MAX_LATENCY),
    default=0.0,
    callback=_number,
    help="Minimum response time in milliseconds.",
)
@click.option(
    "--patch-empties",
    is_flag=True,
    help="Clear `backends` of failover and weighted backends if a PATCH omits it, as the public platform does.",
)
@click.option(
    "--faults",
    metavar="FILE",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help="JSON file with `faults`, `provisioning` and `clock`, as the control API takes them.",
)
@click.option(
    "--nameserver",
    metavar="ADDRESS:PORT",
    help="Issue certificates only when this name server has the required DNS records.",
)
@click.option("--sparse", is_flag=True, help="Omit unset text fields from responses.")
@click.option("--agent", is_flag=True, help="Also run an agent, and print the address of its API as a second line.")
@click.option(
    "--agent-port",
    metavar="PORT",
    type=click.IntRange(0, 65535),
    default=4040,
    show_default=True,
    help="Port of the agent's API; 0 selects a free port.",
)
@click.option(
    "--agent-config",
    metavar="FILE",
    multiple=True,
    type=click.Path(path_type=Path, dir_okay=False),
    help="Configuration file of the agent (repeatable).",
)
@click.pass_context
def command(
    context: click.Context,
    host: str,
    port: int,
    db: str,
    api_key: str,
    seed: tuple[Path, ...],
    accounts: str,
    requests_per_minute: int | None,
    latency: float,
    patch_empties: bool,
    faults: Path | None,
    nameserver: str | None,
    sparse: bool,
    agent: bool,
    agent_port: int,
    agent_config: tuple[Path, ...],
) -> int:
    """Run a local emulator of the platform, until interrupted. Prints its base URL."""
    if context.invoked_subcommand is not None:
        return exit_codes.DONE
    for option in () if agent else ("agent_port", "agent_config"):
        if context.get_parameter_source(option) is not ParameterSource.DEFAULT:
            raise click.UsageError(f"--{option.replace('_', '-')} requires --agent")
    from reconciler.sandbox.base.variants import Variants
    from reconciler.sandbox.server.process import serve

    try:
        serve(
            host,
            port,
            db,
            api_key,
            seed,
            accounts=accounts,
            requests_per_minute=requests_per_minute,
            latency=latency / 1000,
            agent_port=agent_port if agent else None,
            agent_configs=agent_config,
            faults=faults,
            nameserver=nameserver,
            variants=Variants(patch_empties=patch_empties, sparse=sparse),
        )
    except ValueError as error:
        raise exit_codes.Stop(exit_codes.ERROR, f"error: {error}") from error
    except OSError as error:
        _stop_if_in_use(error, f"port {port} or the agent's port {agent_port}" if agent else f"port {port}")
        raise
    except sqlite3.Error as error:
        raise exit_codes.Stop(exit_codes.ERROR, f"error: {db}: {error}") from error
    return exit_codes.DONE


@command.command(
    cls=Command,
    examples="""
        reconciler sandbox agent --server http://127.0.0.1:8080 --config secrets/agent.yml
    """,
)
@click.option("--server", metavar="URL", required=True, callback=_text, help="Base URL of the sandbox.")
@click.option(
    "--config",
    "configs",
    metavar="FILE",
    multiple=True,
    type=click.Path(path_type=Path, dir_okay=False),
    help="Configuration file of the agent (repeatable).",
)
@click.option(
    "--port",
    metavar="PORT",
    type=click.IntRange(0, 65535),
    default=4040,
    show_default=True,
    help="Port of the agent's API; 0 selects a free port.",
)
@click.option("--agent-version", metavar="VERSION", default="", help="Version of the agent that its session shows.")
def agent(server: str, configs: tuple[Path, ...], port: int, agent_version: str) -> int:
    """Run an emulated agent of a running sandbox, until interrupted.

    Prints the address of its API when it is online. What it opens ends with it; after a loss of the connection it
    connects again and opens the same.
    """
    from reconciler.sandbox.agent.program import serve_agent
    from reconciler.sandbox.agent.tunnels import AgentError

    try:
        serve_agent(server, configs, port, agent_version)
    except AgentError as failed:
        raise exit_codes.Stop(exit_codes.ERROR, f"error: {failed}") from failed
    except OSError as error:
        _stop_if_in_use(error, f"port {port}")
        raise
    return exit_codes.DONE


def _stop_if_in_use(error: OSError, ports: str) -> None:
    if error.errno == errno.EADDRINUSE:
        remedy = "choose another port, or 0 for a free one"
        raise exit_codes.Stop(exit_codes.ERROR, f"error: {ports} is already in use; {remedy}") from error


@command.command(
    cls=Command,
    examples="""
        reconciler sandbox openapi > openapi.json
    """,
)
def openapi() -> int:
    """Print the OpenAPI description of the emulated API."""
    import json

    from reconciler.kinds import read_only
    from reconciler.sandbox.operations.routes import operations
    from reconciler.sandbox.wire.openapi import document

    output.print_result(json.dumps(document(operations(read_only.list_served()), "http://127.0.0.1"), indent=2))
    return exit_codes.DONE
