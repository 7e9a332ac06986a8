"""Creates a project: proposes its settings, tries the API key, writes its files. Overwrites nothing."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from reconciler import kinds
from reconciler.api.client import Account
from reconciler.model import dialect
from reconciler.model.problem import Rejected
from reconciler.model.value import Secret
from reconciler.operations.authoring.editor_schemas import render_schemas
from reconciler.operations.runtime import Runtime
from reconciler.operations.validate import make_placeholder
from reconciler.project import atomic_write, files, named_files, pipeline_updates, pipelines
from reconciler.project.files import Unreadable
from reconciler.project.rule_files import list_rule_files
from reconciler.project.settings import connection, environments, project_file
from reconciler.project.settings.config import load_config

KEY = "RECONCILER_API_KEY"
_PLACEHOLDER = "https://api.example.com"  # in the project file until the address is known
_SCHEMAS = atomic_write.SCHEMAS
_EXAMPLE = "manifests/access.yaml"
_EMPTY_FILE = "manifests/.gitkeep"  # Git stores no empty folder, and the folder must exist
_IGNORED = ("/state/", "/secrets/", ".env", "*.key", "/agent.yml", f"/{atomic_write.GENERATED}/")


class ProjectChoices(Struct, frozen=True):
    """The settings of a new project.

    stack         its name
    profile       the dialect of the platform
    base_url      None: that of the profile, or not known yet
    host          code host whose pipelines are written: `github`, `gitlab` or `none`
    package       pip requirement that the pipelines install; empty: not known yet
    environments  in the order in which pipelines apply a merge; those without a file are created
    approvers     code owners of approvals.yaml, separated by spaces; empty: not known yet
    """

    stack: str
    profile: dialect.Name
    base_url: str | None
    host: str
    package: str
    environments: tuple[str, ...] = ()
    approvers: str = ""

    @property
    def platform_address(self) -> str | None:
        """The base URL of the platform; None if it is not known yet."""
        return self.base_url or dialect.DIALECTS[self.profile].base_url


class WrittenProject(Struct, frozen=True):
    """The result of `write_project`.

    files      by path, in order: True if it was written, False if it existed and was kept
    unignored  patterns that are missing in an existing .gitignore
    """

    files: Mapping[str, bool]
    unignored: tuple[str, ...]


def default_stack(folder: Path) -> str:
    """A name for the stack: that of the folder, without characters that a stack name cannot have."""
    name = re.sub(r"[^A-Za-z0-9._-]+", "-", folder.resolve().name).strip("-._")[:63]
    return name or "main"


def default_host(folder: Path) -> str:
    """The code host whose pipelines the repository has, or of its remote; `none` if unknown or below its root."""
    if _find_root_above(folder):
        return "none"
    if (folder / ".github").is_dir():
        return "github"
    if (folder / ".gitlab-ci.yml").is_file():
        return "gitlab"
    try:
        config = named_files.read_bytes(folder / ".git" / "config", named_files.LARGEST_TEXT).decode(errors="replace")
    except (OSError, Unreadable):
        return "none"
    remote = re.search(r"^\s*url\s*=.*\b(github|gitlab)\.", config, re.MULTILINE)
    return remote[1] if remote else "none"


def check_host(folder: Path, host: str) -> str | None:
    """Checks that a code host reads pipelines in the folder. Returns `problem; remedy` or None."""
    root = _find_root_above(folder)
    if root is None or host not in pipelines.HOSTS:
        return None
    return (
        f"pipelines are read at the root of a Git repository only, and {folder.resolve()} is below the root of {root}; "
        f"run init in {root}, or without --ci"
    )


def _find_root_above(folder: Path) -> Path | None:
    """The root of the Git repository that the folder is part of; None if the folder itself is a root, or in none."""
    folder = folder.resolve()
    root = next((place for place in (folder, *folder.parents) if os.path.lexists(place / ".git")), folder)
    return None if root == folder else root


def check_choices(choices: ProjectChoices) -> Mapping[str, str]:
    """The problem of each invalid choice, with the texts of the project file's validation."""
    wrong = {"stack": project_file.check_stack_name(choices.stack)}
    if choices.base_url is not None:
        wrong["base_url"] = connection.check_platform_url(choices.base_url)
    if choices.package:
        wrong["package"] = pipelines.check_package(choices.package)
    if choices.approvers:
        wrong["approvers"] = pipelines.check_approvers(choices.approvers)
    for name in choices.environments:
        wrong["environment"] = wrong.get("environment") or environments.check_name(name)
    if len(set(choices.environments)) < len(choices.environments):
        wrong["environment"] = "names an environment twice; name each environment once"
    return {name: text for name, text in wrong.items() if text}


def default_environments(folder: Path) -> tuple[str, ...]:
    """The environments of the project, in the order in which pipelines apply a merge."""
    return tuple(pipelines.sort_environments(environments.environment_names(folder)))


def with_settings(folder: Path, choices: ProjectChoices, environ: Mapping[str, str]) -> ProjectChoices:
    """The choices with the stack and the platform of the existing project file, which `write_project` keeps.

    The platform is unknown if the file has errors, or names it by a variable that is not set.
    """
    try:
        config = load_config(folder, environ, None, make_placeholder)
    except Rejected:
        return replace(choices, base_url=None, profile="specification")
    return replace(choices, stack=config.stack, profile=config.profile, base_url=config.base_url)


def find_code_owners(folder: Path, host: str) -> str | None:
    """The file with code owners that exists and counts for the host; None if there is none."""
    paths = pipelines.CODE_OWNERS.get(host, ())
    return next((path for path in paths if (folder / path).exists()), None)


def render_code_owners(folder: Path, choices: ProjectChoices, owners: str) -> str:
    """The content of the file `owners`, which has itself an owner."""
    rules = [*list_rule_files(folder), owners]
    return pipelines.render_code_owners(choices.host, choices.approvers, rules)


async def try_key(base_url: str, profile: dialect.Name, key: Secret, runtime: Runtime) -> None:
    """Reads one page with the key. Raises an engine `Failure` if the platform does not accept it."""
    account = Account(base_url.rstrip("/"), key, profile=profile)
    async with runtime.platform.open_reader(
        account, on_wait=lambda seconds: None, on_retry=lambda seconds, why: None
    ) as reader:
        await reader.get(f"{kinds.get('IPPolicy').path}?limit=1")


def write_project(folder: Path, choices: ProjectChoices, *, example: bool) -> WrittenProject:
    """Writes the project's files; keeps those that exist.

    example  also an example manifest, unless a project exists
    """
    wanted = _render_files(folder, choices)
    if _is_begun(folder):
        # The example would be created beside the resources of the project.
        del wanted[_EXAMPLE], wanted[_EMPTY_FILE]
    else:
        del wanted[_EMPTY_FILE if example else _EXAMPLE]
    for path in wanted:
        files.refuse_symlink(folder, path)
    folder.mkdir(parents=True, exist_ok=True)
    is_written = {path: not (folder / path).exists() for path in wanted}
    for path, text in wanted.items():
        if is_written[path]:
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            atomic_write.write(folder / path, text, 0o644)
    return WrittenProject(is_written, _find_unignored(folder))


def _is_begun(folder: Path) -> bool:
    """Whether the folder has a project file or manifests."""
    if (folder / "reconciler.yaml").exists():
        return True
    return any(path.suffix in (".yaml", ".yml") for path in (folder / _EXAMPLE).parent.rglob("*"))


def _find_unignored(folder: Path) -> tuple[str, ...]:
    try:
        text = named_files.read_bytes(folder / ".gitignore", named_files.LARGEST_TEXT).decode(errors="replace")
    except (OSError, Unreadable):  # for example a folder, which Git ignores
        return ()
    patterns = {line.strip().removeprefix("**").lstrip("/").rstrip("/*") for line in text.splitlines()}
    return tuple(pattern for pattern in _IGNORED if pattern.strip("/") not in patterns)


def _render_files(folder: Path, choices: ProjectChoices) -> dict[str, str]:
    found = {
        "reconciler.yaml": _render_project_file(choices),
        _EXAMPLE: _MANIFEST,
        _EMPTY_FILE: "",
        ".gitignore": "".join(f"{line}\n" for line in _IGNORED),
        **{f"{_SCHEMAS}/{name}": text for name, text in render_schemas().items()},
    }
    for name in choices.environments:
        stack = f"stack: {_quote(f'{choices.stack[: 62 - len(name)]}-{name}')}"
        found[f"{environments.FOLDER}/{name}.yaml"] = f"# Settings and patches of the environment {name}.\n{stack}\n"
    if choices.host in pipelines.HOSTS:
        generated = pipelines.read_pipelines(choices.host, choices.package, choices.environments)
        for path, text in generated.items():
            found[path] = pipeline_updates.add_header(choices.host, path, text, choices.environments)
        owners = find_code_owners(folder, choices.host) or pipelines.CODE_OWNERS_PLACE[choices.host]
        found[owners] = render_code_owners(folder, choices, owners)
    return found


def _render_project_file(choices: ProjectChoices) -> str:
    lines = [
        f"# yaml-language-server: $schema={_SCHEMAS}/project.json",
        "# The project: its stack, its account and the folders of its manifests.",
        "version: 1",
        f"stack: {_quote(choices.stack)}",
        "platform:",
    ]
    if choices.profile != "specification":
        lines.append(f"  profile: {choices.profile}")
    if choices.base_url is not None:
        lines.append(f"  base_url: {_quote(choices.base_url)}")
    elif choices.profile == "specification":
        lines.append(f"  base_url: {_PLACEHOLDER} # base URL of the platform's API")
    lines += [f"  api_key: {{from_env: {KEY}}}", "manifests: [manifests/]"]
    if choices.host in pipelines.HOSTS:
        lines += [
            "guards: # approved in approvals.yaml, which reviewers own",
            "  require_approval: [widens_access, locks_out, irreversible, runs_command]",
        ]
    return "\n".join([*lines, ""])


def _quote(text: str) -> str:
    """The text as a YAML scalar, in quotes if it would not be read as this text."""
    plain = re.fullmatch(r"[A-Za-z][A-Za-z0-9._:/-]*", text) and not re.fullmatch(r"(?i)true|false|null", text)
    return text if plain else json.dumps(text)


_MANIFEST = f"""\
# yaml-language-server: $schema=../{_SCHEMAS}/manifest.json
# A resource is a kind, a name and a spec; the kinds: `reconciler kinds`, one of them: `reconciler explain IPPolicy`.
# `reconciler import` writes manifests for objects that exist already.
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
