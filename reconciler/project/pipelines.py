"""Pipelines of a new project, from `examples/gitops`: a part per environment, and the package that they install.

The files there are the pipelines of a project without environments. Lines between the comments `for each environment:`
and `end of the environments` are repeated for each environment. No package index is assumed: a pipeline installs only
the requirement that the user chose.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

HOSTS: Final = ("github", "gitlab")
_PACKAGED: Final = Path(__file__).parents[1] / "pipelines"  # in a wheel
_SOURCE: Final = Path(__file__).parents[2] / "examples" / "gitops"

PACKAGE_IN: Final = {"github": ".github/actions/reconciler/action.yml", "gitlab": ".gitlab-ci.yml"}
"""The file with the package requirement, by host."""
_UNSAID: Final = {
    "github": re.compile(r'(?<=\n  package:\n)(    description: .*\n    default: )""'),
    "gitlab": re.compile(r'(?<=\nvariables:\n)(  RECONCILER_PACKAGE: )""'),
}
_NAME: Final = "reconciler"
_STORE: Final = "postgres"  # extra for a store in PostgreSQL
_REQUIREMENT: Final = re.compile(r"(?P<name>[A-Za-z0-9][A-Za-z0-9._-]*)(\[(?P<extras>[^\]]*)\])?(?P<rest>.*)")
_NO_PACKAGE: Final = (
    "is not a package requirement; write a wheel's URL, git+https://…@commit, or a name and its version"
)


CODE_OWNERS: Final = {
    "github": (".github/CODEOWNERS", "CODEOWNERS", "docs/CODEOWNERS"),
    "gitlab": ("CODEOWNERS", "docs/CODEOWNERS", ".gitlab/CODEOWNERS"),
}
"""The files in which a host looks for code owners; the first one that exists counts."""
CODE_OWNERS_PLACE: Final = {host: f".{host}/CODEOWNERS" for host in HOSTS}
"""The one that `init` writes."""
_OWNED: Final = {"github": ("/.github/",), "gitlab": ("/.gitlab-ci.yml", "/.gitlab/")}
_OWNER: Final = re.compile(r"@[A-Za-z0-9][A-Za-z0-9._-]*(/[A-Za-z0-9][A-Za-z0-9._-]*)*|[^@\s#]+@[^@\s#]+\.[^@\s#]+")
_BLOCK: Final = re.compile(r"^ *# for each environment:\n(.*?)^ *# end of the environments\n", re.MULTILINE | re.DOTALL)
_CHAINED: Final = re.compile(r"^( *)# after the previous environment: (.*\n)", re.MULTILINE)
_LAST: Final = ("prod", "production", "live")
_FIRST: Final = ("dev", "development", "test")


def sort_environments(names: Sequence[str]) -> list[str]:
    """Names in the order in which a merge should be applied: development first, production last."""
    return sorted(names, key=lambda name: (name in _LAST) - (name in _FIRST))


def render_code_owners(host: str, approvers: str, rules: Sequence[str]) -> str:
    """CODEOWNERS: the approvers own the pipelines and the files of rules. Without approvers the lines are comments to
    complete.

    rules  files and folders that decide what is approved and where it applies; a folder ends with /
    """
    others = CODE_OWNERS[host]  # a new one of them would replace this one
    owned = dict.fromkeys([*(f"/{_escape_path(path)}" for path in (*rules, *others)), *_OWNED[host]])
    lines = [f"{path} {approvers or '@OWNER/TEAM'}" for path in owned]
    return "\n".join(
        [
            "# Changes of approvals, settings, policies and pipelines must be approved by their owners. Require",
            "# reviews of code owners in the protection rules of the default branch.",
            *([] if approvers else ["# Replace @OWNER/TEAM by a user or team, and remove the comment signs:"]),
            *(lines if approvers else (f"# {line}" for line in lines)),
            "",
        ]
    )


def _escape_path(path: str) -> str:
    """A path as a pattern that matches this path only."""
    return re.sub(r"([\\\s#*?\[\]!])", r"\\\1", path)


def check_approvers(text: str) -> str | None:
    """Checks the owners of approvals. Returns `problem; remedy` or None."""
    if text.isprintable() and text.split() and all(_OWNER.fullmatch(owner) for owner in text.split()):
        return None
    return "is not a list of code owners; write users, teams or mail addresses, such as @octo/platform"


def read_pipelines(host: str, package: str = "", environments: Sequence[str] = ()) -> Mapping[str, str]:
    """Pipeline files of one of HOSTS, by path in the repository.

    package       the requirement that they install
    environments  names in the order in which a merge is applied; none for a project without environments
    """
    root = (_PACKAGED if _PACKAGED.is_dir() else _SOURCE) / host
    paths = sorted(file for file in root.rglob("*") if file.is_file())
    texts = {
        file.relative_to(root).as_posix(): _repeat_blocks(file.read_text(encoding="utf-8"), environments)
        for file in paths
    }
    if package:
        quoted = json.dumps(with_store(package))
        place = PACKAGE_IN[host]
        texts[place] = _UNSAID[host].sub(lambda unsaid: unsaid[1] + quoted, texts[place])
    return texts


def _repeat_blocks(text: str, environments: Sequence[str]) -> str:
    if not environments:
        repeated = _BLOCK.sub(lambda block: _CHAINED.sub("", block[1]), text)
    else:
        ids = dict(zip(environments, _make_ids(environments), strict=True))
        repeated = _BLOCK.sub(lambda block: "".join(_repeat_block(block[1], ids)), text)
    return re.sub(r"\n{3,}", "\n\n", repeated).rstrip("\n") + "\n"


def _repeat_block(block: str, ids: Mapping[str, str]) -> Iterator[str]:
    previous = ""
    for name, id in ids.items():
        variable = f"RECONCILER_READ_KEY_{id.upper().replace('-', '_')}"
        inserted = {
            'RECONCILER_ENV: ""': f'RECONCILER_ENV: "{name}"',
            'RECONCILER_ENV=""': f'RECONCILER_ENV="{name}"',
            'environment: "production"': f'environment: "{name}"',
            "secrets.RECONCILER_READ_KEY": f"secrets.{variable} || secrets.RECONCILER_READ_KEY",
            "RECONCILER_READ_KEY_PRODUCTION": variable,
            "-previous": f"-{previous}",
            "production": id,
        }
        text = _CHAINED.sub(r"\1\2" if previous else "", block)
        yield _replace_words(text, inserted)
        previous = id


def _replace_words(text: str, inserted: Mapping[str, str]) -> str:
    """Replaces each key by its value, in one pass: a value may contain keys, as `production-eu` does."""
    return re.sub("|".join(map(re.escape, inserted)), lambda found: inserted[found[0]], text)


def _make_ids(environments: Sequence[str]) -> list[str]:
    """A unique id for each environment that names of jobs, variables and files can contain."""
    ids: list[str] = []
    for name in environments:
        id = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-") or "environment"
        while id in ids:
            id = f"{id}-{len(ids) + 1}"
        ids.append(id)
    return ids


def is_mentioned(host: str, text: str) -> bool:
    """Whether the text of the file in PACKAGE_IN names a package."""
    return _UNSAID[host].search(text) is None


def with_store(package: str) -> str:
    """Adds the extra for a store in PostgreSQL to a package requirement."""
    if _is_address(package):
        return f"{_NAME}[{_STORE}] @ {package}"
    if _is_path(package):
        return package if package.endswith("]") else f"{package}[{_STORE}]"
    parts = _REQUIREMENT.fullmatch(package)
    assert parts is not None, "its form was checked"
    extras = [extra.strip() for extra in (parts["extras"] or "").split(",") if extra.strip()]
    return f"{parts['name']}[{','.join(dict.fromkeys([*extras, _STORE]))}]{parts['rest']}"


def wants_index(package: str) -> bool:
    """Whether a requirement is a name, which must be looked up in a package index."""
    return bool(package) and not _is_path(package) and "://" not in package


def check_package(text: str) -> str | None:
    """Checks a package requirement. Returns `problem; remedy` or None."""
    if not text.isprintable() or text != text.strip() or not (_is_path(text) or _REQUIREMENT.fullmatch(text)):
        return _NO_PACKAGE
    if "$" in text:
        return "contains $, which the CI system would expand; write %24"
    try:
        secret = _has_credentials(text if _is_address(text) else text.partition("@")[2].strip())
    except ValueError:
        return _NO_PACKAGE
    return "would write a user or password into the repository; remove them" if secret else None


def find_install_source() -> str:
    """The requirement that installed this program (PEP 610), if other machines can use it; otherwise empty."""
    try:
        origin = json.loads(metadata.distribution(_NAME).read_text("direct_url.json") or "{}")
        requirement = _requirement(origin)
    except (metadata.PackageNotFoundError, OSError, ValueError, AttributeError, KeyError, TypeError):
        return ""
    return requirement if requirement and check_package(requirement) is None else ""


def _requirement(origin: Mapping[str, Any]) -> str:
    url = str(origin.get("url", ""))
    if urlsplit(url).scheme not in ("https", "ssh"):
        return ""
    below = f"#subdirectory={origin['subdirectory']}" if origin.get("subdirectory") else ""
    if "vcs_info" in origin:
        return f"{origin['vcs_info']['vcs']}+{url}@{origin['vcs_info']['commit_id']}{below}"
    if "archive_info" not in origin:
        return ""
    sha256 = (origin["archive_info"].get("hashes") or {}).get("sha256")
    return url + (f"#sha256={sha256}" if sha256 and not below else below)


def _is_address(package: str) -> bool:
    return re.match(r"[A-Za-z][A-Za-z0-9.+-]*://", package) is not None


def _is_path(package: str) -> bool:
    return "://" not in package and "/" in package and not package.startswith("-")


def _has_credentials(url: str) -> bool:
    parts = urlsplit(url)
    return parts.password is not None or (parts.username is not None and not parts.scheme.endswith("ssh"))
