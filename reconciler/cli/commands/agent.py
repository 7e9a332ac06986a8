"""`reconciler agent`: what agents need of this project, which is their configuration file."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import click

from reconciler.cli.terminal import exit_codes, options, output
from reconciler.cli.terminal.group import Command, Group

if TYPE_CHECKING:
    from reconciler.cli.terminal.options import Options
    from reconciler.model.address import Address
    from reconciler.project.manifests.load import Loaded
    from reconciler.rendering.agent_config import Merged


@click.group(
    cls=Group,
    name="agent",
    invoke_without_command=True,
    examples="""
        reconciler agent config berlin --out secrets/agent.yml
    """,
)
@click.pass_context
def command(context: click.Context) -> int:
    """Write what agents are started with."""
    if context.invoked_subcommand is not None:
        return exit_codes.DONE
    output.answer(context.get_help())
    return exit_codes.USAGE


@command.command(
    "config",
    cls=Command,
    examples="""
        reconciler agent config berlin
        reconciler agent config base berlin --out secrets/agent.yml
    """,
)
@click.argument("names", nargs=-1, required=True, metavar="NAME...")
@click.option(
    "--out",
    metavar="FILE",
    type=options.Place("name a file, or leave --out out to print it without the token", path_type=Path, dir_okay=False),
    help="Write it, token and all.",
)
@options.offline
def config(common: Options, names: tuple[str, ...], out: Path | None) -> int:
    """Print the configuration file of an agent, merged from manifests of the kind AgentConfig.

    The token is written to a FILE of which nobody else can read a word, and never printed: keep it out of Git, as
    secrets/ is. An agent ingress is asked for its regional domains; nothing is changed.
    """
    from reconciler.cli.terminal import atomic_write
    from reconciler.model.problem import Rejected
    from reconciler.project.manifests import load as manifests
    from reconciler.project.settings import config as projects
    from reconciler.rendering import agent_config

    project = projects.load(common.project, os.environ, common.environment)
    loaded = manifests.load(project, os.environ, common.variables)
    merged, problems = agent_config.merge(_addresses(names, loaded), loaded.rendered)
    if problems:
        raise Rejected(problems)
    server_addr = _server_addr(merged, loaded, common)
    if out is None:
        output.answer(agent_config.text(merged, server_addr, None))
        return exit_codes.DONE
    out.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    atomic_write.write(out, agent_config.text(merged, server_addr, _token(merged, loaded, project.root)))
    if not common.quiet:
        output.say(f"Written: {out}")
    return exit_codes.DONE


def _addresses(names: tuple[str, ...], loaded: Loaded) -> list[Address]:
    from reconciler.project.documents import phrases

    known: Mapping[str, Address] = {address.name: address for address in loaded.rendered}
    for name in names:
        if name.removeprefix("AgentConfig/") not in known:
            remedy = phrases.meant(name, known) or "declare it: kind: AgentConfig"
            raise exit_codes.Stop(exit_codes.ERROR, f"error: there is no AgentConfig/{name} in the manifests; {remedy}")
    return [known[name.removeprefix("AgentConfig/")] for name in dict.fromkeys(names)]


def _token(merged: Merged, loaded: Loaded, root: Path) -> str:
    """The token itself, or that of the credential as it was delivered."""
    from reconciler.engine.ports import Undeliverable
    from reconciler.model.value import Secret
    from reconciler.project.secrets import read_back

    assert merged.signs_in is not None
    value = merged.signs_in.value
    if isinstance(value, Secret):
        return value.reveal()
    credential = loaded.manifest.declarations[value.target]
    where = f"error: {merged.signs_in.position}: {merged.signs_in.by}.credential: the token of {value.target}"
    delivery = credential.deliver.get("token")
    if delivery is None:
        raise exit_codes.Stop(
            exit_codes.ERROR, f"{where} is delivered nowhere; add deliver: to it ({credential.position})"
        )
    try:
        return read_back.read(root, delivery).reveal()
    except Undeliverable as why:
        ways = " or ".join(read_back.WAYS)
        remedy = "apply first" if delivery.way in read_back.WAYS else f"deliver it {ways}, or give an authtoken"
        raise exit_codes.Stop(exit_codes.ERROR, f"{where} is not there: {why}; {remedy}") from None


def _server_addr(merged: Merged, loaded: Loaded, common: Options) -> str | None:
    """Where the agent connects to: as written, or the regional domain of the ingress as it is on the platform."""
    from reconciler.cli import session
    from reconciler.kinds.rules import canonical
    from reconciler.rendering import agent_config

    said = merged.connects_to
    if said is None or isinstance(said.value, str):
        return said.value if said is not None else None
    domain = canonical.host(loaded.manifest.declarations[said.value.target].spec.get("domain"))
    opened = session.opened(common)
    snapshot = session.run(session.seen(opened, only=frozenset({"AgentIngress"})))
    listing = snapshot.of("AgentIngress")
    where = f"error: {said.position}: {said.by}.ingress: {said.value.target}"
    live = next((each for each in listing.objects if canonical.host(each.body.get("domain")) == domain), None)
    if live is None:
        why = f"could not be read: {listing.why}" if not listing.complete else "is not on the platform; apply first"
        raise exit_codes.Stop(exit_codes.ERROR, f"{where} {why}")
    found = live.body.get("region_domains")
    regional = [each for each in found if isinstance(each, str)] if isinstance(found, list) else []
    chosen = agent_config.regional(regional, domain, merged.region)
    if chosen is None:
        named = f"no regional domain of {merged.region}" if merged.region else "several regional domains, if any"
        raise exit_codes.Stop(
            exit_codes.ERROR, f"{where} has {named}; name a region of {', '.join(regional) or 'those to come'}"
        )
    return chosen
