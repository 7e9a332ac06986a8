"""Renders the configuration file of an agent from AgentConfig manifests, with the token and the server's address."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from reconciler.engine.ports import Undeliverable
from reconciler.kinds.rules import canonical
from reconciler.model.address import Address
from reconciler.model.suggestions import did_you_mean
from reconciler.model.value import Secret
from reconciler.operations.errors import IncompleteAgentConfig, InvalidProject, UnusableOutput
from reconciler.operations.opening.source import ProjectSource, read_project
from reconciler.operations.output_files import check_output
from reconciler.operations.project_openers import open_project
from reconciler.operations.reporting import OnEvent, ignore_event
from reconciler.project import atomic_write
from reconciler.project.manifests.load import Loaded
from reconciler.project.secrets import read_back
from reconciler.project.settings.config import Config
from reconciler.rendering import agent_config
from reconciler.rendering.agent_config import Merged


async def render_agent_config(
    source: ProjectSource, names: Sequence[str], *, with_token: bool, on_event: OnEvent = ignore_event
) -> str:
    """The text of the file, merged from the AgentConfigs with these names.

    with_token  include the token; otherwise the file has none

    Reads the platform only if the address of an agent ingress is needed. Raises InvalidProject or
    IncompleteAgentConfig.
    """
    return await _render(*read_project(source), source, names, with_token=with_token, on_event=on_event)


async def write_agent_config(
    source: ProjectSource, names: Sequence[str], file: Path, *, on_event: OnEvent = ignore_event
) -> None:
    """Writes the file with the token, readable by its owner only. Replaces only a file that this function wrote.

    Raises UnusableOutput for a place that a delivery or the project uses, and errors as `render_agent_config` does.
    """
    config, loaded = read_project(source)
    _check_file(file, config, loaded)
    text = await _render(config, loaded, source, names, with_token=True, on_event=on_event)
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    atomic_write.write(file, text)


async def _render(
    config: Config,
    loaded: Loaded,
    source: ProjectSource,
    names: Sequence[str],
    *,
    with_token: bool,
    on_event: OnEvent,
) -> str:
    merged, problems = agent_config.merge(_addresses(names, loaded), loaded.rendered)
    if problems:
        raise InvalidProject(problems)
    server_addr = await _server_addr(merged, loaded, source, on_event)
    return agent_config.render_file(merged, server_addr, _token(merged, loaded, config.root) if with_token else None)


def _check_file(file: Path, config: Config, loaded: Loaded) -> None:
    """Raises UnusableOutput for a reserved place, a target of a delivery, and a file that was not written here."""
    remedy = "use another file, as in secrets/agent.yml"
    check_output(file, config, loaded.manifest.declarations.values(), remedy, has_secret=True)
    if not file.is_file():
        return
    with file.open("rb") as opened:
        start = opened.read(len(agent_config.FIRST_WORDS))
    if start and start != agent_config.FIRST_WORDS.encode():
        raise UnusableOutput(f"{file} exists and was not written by `agent config`; move it away, or {remedy}")


def _addresses(names: Sequence[str], loaded: Loaded) -> list[Address]:
    known: Mapping[str, Address] = {address.name: address for address in loaded.rendered}
    for name in names:
        if name.removeprefix("AgentConfig/") not in known:
            remedy = did_you_mean(name, known) or "declare it: kind: AgentConfig"
            raise IncompleteAgentConfig(f"there is no AgentConfig/{name} in the manifests; {remedy}")
    return [known[name.removeprefix("AgentConfig/")] for name in dict.fromkeys(names)]


def _token(merged: Merged, loaded: Loaded, root: Path) -> str:
    """The declared token, or the delivered token of the credential."""
    assert merged.signs_in is not None
    value = merged.signs_in.value
    if isinstance(value, Secret):
        return value.reveal()
    credential = loaded.manifest.declarations[value.target]
    where = f"{merged.signs_in.position}: {merged.signs_in.declared_by}.credential: the token of {value.target}"
    delivery = credential.deliver.get("token")
    if delivery is None:
        raise IncompleteAgentConfig(
            f"{where} has no delivery; add `deliver:` to the credential ({credential.position})"
        )
    try:
        return read_back.read_secret(root, delivery).reveal()
    except Undeliverable as why:
        ways = " or ".join(read_back.WAYS)
        remedy = "apply first" if delivery.way in read_back.WAYS else f"deliver it {ways}, or set authtoken"
        raise IncompleteAgentConfig(f"{where} cannot be read: {why}; {remedy}") from None


async def _server_addr(merged: Merged, loaded: Loaded, source: ProjectSource, on_event: OnEvent) -> str | None:
    """The server address: as declared, or the regional domain of the declared ingress, read from the platform."""
    setting = merged.connects_to
    if setting is None or isinstance(setting.value, str):
        return setting.value if setting is not None else None
    domain = canonical.host(loaded.manifest.declarations[setting.value.target].spec.get("domain"))
    snapshot = await open_project(source).take_snapshot(only=frozenset({"AgentIngress"}), on_event=on_event)
    ingresses = snapshot.of("AgentIngress").objects
    where = f"{setting.position}: {setting.declared_by}.ingress: {setting.value.target}"
    live = next((ingress for ingress in ingresses if canonical.host(ingress.body.get("domain")) == domain), None)
    if live is None:
        raise IncompleteAgentConfig(f"{where} is not on the platform; apply first")
    found = live.body.get("region_domains")
    regional = [name for name in found if isinstance(name, str)] if isinstance(found, list) else []
    chosen = agent_config.find_regional_domain(regional, domain, merged.region)
    if chosen is None:
        what = f"no regional domain for {merged.region}" if merged.region else "not exactly one regional domain"
        raise IncompleteAgentConfig(f"{where} has {what}; set `region` to one of {', '.join(regional) or '(none yet)'}")
    return chosen
