"""`reconciler init`: a new project, asked for at a terminal or told by flags. Overwrites nothing, stores no key."""

from __future__ import annotations

import json
import os
import re
import shlex
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from reconciler.cli.terminal import exit_codes, output
from reconciler.cli.terminal.group import Command

if TYPE_CHECKING:
    from reconciler.model import dialect as profiles
    from reconciler.model.value import Secret

_HOSTS = ("github", "gitlab", "none")
_PROFILES: tuple[profiles.Name, ...] = ("specification", "ngrok")
_ADDRESS = "https://api.example.com"  # stands in the file until it is known
_KEY = "RECONCILER_API_KEY"
_SCHEMAS = ".schemas"  # what editors check manifests with
_EXAMPLE = "manifests/access.yaml"
_KEPT = "manifests/.gitkeep"  # Git keeps no empty folder, and a project whose folder is missing is refused
_IGNORED = (
    *("/state/", "/secrets/", ".env", "*.key", "/agent.yml"),
    *("/plan.json", "/plan.md", "/plan.html", "/plan.sarif", "/codequality.json"),
    *("/drift.json", "/drift.md", "/drift.html", "/report.html", "/snapshot.json", "/events.ndjson"),
)


@dataclass(frozen=True)
class _Wishes:
    """What was asked for. No `base_url`: the profile knows its own, or it is not known yet."""

    stack: str
    profile: profiles.Name
    base_url: str | None
    host: str
    package: str  # what the pipelines install; empty: it is still to be said


@click.command(
    cls=Command,
    examples="""
        reconciler init
        reconciler init infrastructure --ci github
        reconciler init website --yes --example --base-url http://127.0.0.1:4041
        reconciler init --yes --base-url https://api.example.com --stack prod --ci gitlab
        reconciler init --ci github --package https://packages.example.com/reconciler-0.1.0-py3-none-any.whl
    """,
)
@click.argument("folder", metavar="[DIR]", default=".", type=click.Path(path_type=Path, file_okay=False))
@click.option(
    "--stack", metavar="NAME", help="The ownership scope, unique in the account; the folder's name by default."
)
@click.option(
    "--profile",
    type=click.Choice(_PROFILES),
    help="Which dialect of the API the platform speaks; the first by default.",
)
@click.option("--base-url", metavar="URL", help="The platform's address; the profile ngrok knows its own.")
@click.option(
    "--ci",
    "host",
    type=click.Choice(_HOSTS),
    help="Write the pipelines of this code host; by default of the one that the folder's Git points to.",
)
@click.option(
    "--package",
    metavar="WHAT",
    help="What the pipelines install, as pip spells it: a wheel's URL, git+https://…@commit, or a name on your index; "
    "where this reconciler came from by default, if that was a URL.",
)
@click.option("--example", is_flag=True, help="Also write a first manifest, an IP policy with one rule, to try out.")
@click.option("--yes", "-y", is_flag=True, help="Ask nothing: what no flag says is as it would be proposed.")
@click.option("--no-check", is_flag=True, help="Do not try the API key.")
def command(
    folder: Path,
    stack: str | None,
    profile: profiles.Name | None,
    base_url: str | None,
    host: str | None,
    package: str | None,
    example: bool,
    yes: bool,
    no_check: bool,
) -> int:
    """Write a new project: reconciler.yaml, schemas for editors, and pipelines.

    What is there already stays as it is. The API key is tried with one read, and kept nowhere.
    """
    from reconciler.project import pipelines

    asking = not yes
    if asking and not sys.stdin.isatty():
        raise exit_codes.Stop(exit_codes.USAGE, "error: init asks, and nobody is there to answer; give -y")
    proposed = _Wishes(
        stack or _stack_of(folder),
        profile or _PROFILES[0],
        base_url or os.environ.get("RECONCILER_BASE_URL") or None,
        host or _host_of(folder),
        pipelines.installed_from() if package is None else package,
    )
    wishes = _asked(proposed, asking, given={stack, profile, base_url, host, package})
    _refuse_nonsense(wishes)
    key = None if no_check else _check(wishes, asking)
    flags = {"--stack": stack, "--profile": profile, "--base-url": base_url}
    given = [flag for flag, value in flags.items() if value is not None]
    if given and (folder / "reconciler.yaml").exists():
        output.say(f"note: reconciler.yaml is there already and stays as it is: {', '.join(given)} went unheard")
    _tell_unheard_package(folder, wishes, package)
    _write(folder, wishes, example=example)
    output.answer(_next_steps(folder, wishes))
    if asking and key and click.confirm("Write manifests for what the account has already?", err=True):
        from reconciler.cli.commands import import_

        os.environ[_KEY] = key  # where the new project looks for it
        return int(import_.command.main(["--project", str(folder)], "reconciler import", standalone_mode=False))
    return exit_codes.DONE


# --- what is wished ---------------------------------------------------------------------------------------------------


def _stack_of(folder: Path) -> str:
    """A name for the stack: the folder's, as far as it is one."""
    name = re.sub(r"[^A-Za-z0-9._-]+", "-", folder.resolve().name).strip("-._")[:63]
    return name or "main"


def _host_of(folder: Path) -> str:
    """Whose pipelines the repository has already, or where it came from."""
    if (folder / ".github").is_dir():
        return "github"
    if (folder / ".gitlab-ci.yml").is_file():
        return "gitlab"
    try:
        config = (folder / ".git" / "config").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return "none"
    remote = re.search(r"^\s*url\s*=.*\b(github|gitlab)\.", config, re.MULTILINE)
    return remote[1] if remote else "none"


def _asked(proposed: _Wishes, asking: bool, given: set[str | None]) -> _Wishes:
    """With the answers of whoever sits at the terminal; what a flag said is not asked for."""
    if not asking:
        return proposed

    def ask(question: str, proposal: str | None, **more: Any) -> str:
        if proposal is not None and proposal in given:
            return proposal
        return str(click.prompt(question, default=proposal, err=True, **more))

    stack = ask("Name of the stack, unique in the account", proposed.stack)
    asked = ask("Dialect of the API", proposed.profile, type=click.Choice(_PROFILES))
    profile = next(each for each in _PROFILES if each == asked)
    base_url = proposed.base_url
    if profile == "specification":
        base_url = ask("Address of the platform", proposed.base_url)
    host = ask("Pipelines for", proposed.host, type=click.Choice(_HOSTS))
    package = proposed.package
    if host != "none":
        question = "What they install: a wheel's URL, or git+https://…@commit (empty: later)"
        package = ask(question, package, show_default=bool(package)).strip()
    return _Wishes(stack, profile, base_url, host, package)


def _refuse_nonsense(wishes: _Wishes) -> None:
    """Usage errors in the words that the project file's own check has for them."""
    from reconciler.project import pipelines
    from reconciler.project.settings import config

    wrong = {"--stack": config.stack_name(wishes.stack)}
    if wishes.base_url is not None:
        wrong["--base-url"] = config.address_of_platform(wishes.base_url)
    if wishes.package:
        wrong["--package"] = pipelines.package(wishes.package)
    lines = [f"error: {flag}: {text}" for flag, text in wrong.items() if text]
    if lines:
        raise exit_codes.Stop(exit_codes.USAGE, *lines)


# --- the key ----------------------------------------------------------------------------------------------------------


def _check(wishes: _Wishes, asking: bool) -> str | None:
    """One read with the key, if any: the key that serves. Refused tells why it does not, and nothing is written."""
    from reconciler.model.dialect import PROFILES
    from reconciler.model.value import Secret

    base_url = wishes.base_url or PROFILES[wishes.profile].base_url
    if base_url is None:
        output.say("note: the key was not tried: there is no address yet")
        return None
    text = os.environ.get(_KEY)
    if text is None and asking:
        text = click.prompt("API key, to try it (kept nowhere; empty: later)", default="", hide_input=True, err=True)
    if not text:
        output.say(f"note: the key was not tried: {_KEY} is not set")
        return None
    _try(base_url, wishes.profile, Secret(text, f"env:{_KEY}"))
    output.say(f"{base_url} accepts the key.")
    return text


def _try(base_url: str, profile: profiles.Name, key: Secret) -> None:
    from reconciler import kinds
    from reconciler.api.client import Account
    from reconciler.api.platform import reading
    from reconciler.cli import session

    async def once() -> None:
        async with reading(Account(base_url.rstrip("/"), key, profile=profile)) as reader:
            await reader.get(f"{kinds.get('IPPolicy').path}?limit=1")

    session.run(once())


# --- the files --------------------------------------------------------------------------------------------------------


def _write(folder: Path, wishes: _Wishes, *, example: bool) -> None:
    from reconciler.cli.terminal import atomic_write
    from reconciler.project import files

    wanted = _files(wishes)
    if _is_begun(folder):
        del wanted[_EXAMPLE], wanted[_KEPT]  # the example would be created beside the resources of the project
    else:
        del wanted[_KEPT if example else _EXAMPLE]
    for path in wanted:
        files.refuse_detour(folder, path)
    folder.mkdir(parents=True, exist_ok=True)
    for path, text in wanted.items():
        file = folder / path
        if file.exists():
            output.say(f"kept {path}, which is there already")
            continue
        file.parent.mkdir(parents=True, exist_ok=True)
        atomic_write.write(file, text, 0o644)
        output.say(f"wrote {path}")
    _tell_unignored(folder)


def _is_begun(folder: Path) -> bool:
    """Whether there is a project already, or manifests for one."""
    if (folder / "reconciler.yaml").exists():
        return True
    return any(each.suffix in (".yaml", ".yml") for each in (folder / _EXAMPLE).parent.rglob("*"))


def _tell_unignored(folder: Path) -> None:
    """Of a .gitignore that was there: what of ours it does not keep out of Git."""
    try:
        text = (folder / ".gitignore").read_text(encoding="utf-8", errors="replace")
    except OSError:  # a folder, say: nothing that Git would heed
        return
    said = {line.strip().removeprefix("**").lstrip("/").rstrip("/*") for line in text.splitlines()}
    if lacking := [each for each in _IGNORED if each.strip("/") not in said]:
        output.say(
            f"note: .gitignore does not say {' '.join(lacking)}: add what Git should not keep, secrets above all"
        )


def _tell_unheard_package(folder: Path, wishes: _Wishes, given: str | None) -> None:
    from reconciler.project import pipelines

    place = pipelines.PACKAGE_IN.get(wishes.host)
    if given and place is None:
        output.say("note: no pipelines are written: --package went unheard")
    elif given and (folder / str(place)).exists():
        output.say(f"note: {place} is there already and stays as it is: --package went unheard")


def _files(wishes: _Wishes) -> dict[str, str]:
    from reconciler import kinds
    from reconciler.project import pipelines
    from reconciler.project.settings.config import ProjectForm
    from reconciler.rendering.schemas.project import editor_schemas

    schemas = editor_schemas(ProjectForm, kinds.declarable())
    found = {
        "reconciler.yaml": _project_file(wishes),
        _EXAMPLE: _MANIFEST,
        _KEPT: "",
        ".gitignore": "".join(f"{line}\n" for line in _IGNORED),
        **{f"{_SCHEMAS}/{name}": json.dumps(each, indent=1) + "\n" for name, each in schemas.items()},
    }
    return {**found, **(pipelines.of(wishes.host, wishes.package) if wishes.host in pipelines.HOSTS else {})}


def _project_file(wishes: _Wishes) -> str:
    lines = [
        f"# yaml-language-server: $schema={_SCHEMAS}/project.json",
        "# Which account this is about, under which name, and where the manifests are.",
        "version: 1",
        f"stack: {_quoted(wishes.stack)}",
        "platform:",
    ]
    if wishes.profile != "specification":
        lines.append(f"  profile: {wishes.profile}")
    if wishes.base_url is not None:
        lines.append(f"  base_url: {_quoted(wishes.base_url)}")
    elif wishes.profile == "specification":
        lines.append(f"  base_url: {_ADDRESS} # where the platform's API is")
    lines += [f"  api_key: {{from_env: {_KEY}}}", "manifests: [manifests/]", ""]
    return "\n".join(lines)


def _quoted(text: str) -> str:
    """A name that YAML would take for something else, in quotes."""
    plain = re.fullmatch(r"[A-Za-z][A-Za-z0-9._:/-]*", text) and not re.fullmatch(r"(?i)true|false|null", text)
    return text if plain else json.dumps(text)


_MANIFEST = f"""\
# yaml-language-server: $schema=../{_SCHEMAS}/manifest.json
# A resource is a kind, a name and a spec; the kinds: `reconciler kinds`, one of them: `reconciler explain IPPolicy`.
# What exists already is written down by `reconciler import`.
kind: IPPolicy
name: office
spec:
  description: Where we work
---
kind: IPPolicyRule
name: office-lan
spec:
  ip_policy_id: {{ref: IPPolicy/office}}
  cidr: 203.0.113.0/24
  action: allow
"""


def _next_steps(folder: Path, wishes: _Wishes) -> str:
    steps = [] if folder == Path() else [f"cd {shlex.quote(str(folder))}"]
    if wishes.profile == "specification" and wishes.base_url is None:
        steps.append("edit reconciler.yaml     # base_url; `reconciler sandbox` is a platform to rehearse on")
    steps += [
        f"export {_KEY}='<your key>'",
        "reconciler import --dry-run     # what exists already, as manifests",
        "reconciler plan                 # what would change; nothing does yet",
        "reconciler apply",
    ]
    text = "Next:\n" + "".join(f"  {step}\n" for step in steps)
    if wishes.host == "github":
        text += (
            "The workflows want secrets: RECONCILER_READ_KEY, RECONCILER_PLAN_KEY, and in the environment production\n"
        )
        text += "RECONCILER_API_KEY. docs/gitops.md of reconciler says more.\n"
    elif wishes.host == "gitlab":
        text += "The jobs want masked variables, which .gitlab-ci.yml lists at its top.\n"
    return text + _still_to_say(folder, wishes)


def _still_to_say(folder: Path, wishes: _Wishes) -> str:
    """What the pipelines do not know yet of what they install."""
    from reconciler.project import pipelines

    package, index = {"github": ("package", "index")}.get(wishes.host, ("RECONCILER_PACKAGE", "PIP_INDEX_URL"))
    place = pipelines.PACKAGE_IN.get(wishes.host)
    if place is None:
        return ""
    text = output.read(folder / place)
    if not pipelines.is_said(wishes.host, text):
        return f"They install nothing yet: say in {place} what, as {package}.\n"
    if pipelines.wants_index(wishes.package) and pipelines.with_store(wishes.package) in text:
        return f"{wishes.package} is a name: say in {place} on which index of yours, as {index}.\n"
    return ""
