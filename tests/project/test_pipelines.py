"""Pipelines of a new project: environments in order, owners, and the package that they install."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import pytest
import yaml
from hypothesis import example, given
from hypothesis import strategies as st

from reconciler.project import pipelines
from reconciler.project.settings import environments


def test_development_is_applied_first_and_production_last() -> None:
    names = ["b", "production", "test", "a", "prod", "dev", "live", "development", "c"]
    assert pipelines.sort_environments(names) == [
        "test", "dev", "development", "b", "a", "c", "production", "prod", "live",
    ]  # fmt: skip


@pytest.mark.parametrize("host", pipelines.HOSTS)
def test_approvers_own_the_approvals_and_the_pipelines(host: str) -> None:
    places = ["/.github/CODEOWNERS", "/CODEOWNERS", "/docs/CODEOWNERS"]
    owned = {
        "github": [*places, "/.github/"],
        "gitlab": ["/CODEOWNERS", "/docs/CODEOWNERS", "/.gitlab/CODEOWNERS", "/.gitlab-ci.yml", "/.gitlab/"],
    }[host]
    files = ("approvals.yaml", "policies/")
    given = pipelines.render_code_owners(host, "@octo/platform a@b.c", files)
    rules = [line for line in given.splitlines() if not line.startswith("#")]
    assert rules == [f"{path} @octo/platform a@b.c" for path in ("/approvals.yaml", "/policies/", *owned)]
    assert given.endswith(" @octo/platform a@b.c\n")
    assert "Replace @OWNER/TEAM" not in given
    unnamed = pipelines.render_code_owners(host, "", files)
    assert all(line.startswith("# ") for line in unnamed.splitlines())
    assert [line for line in unnamed.splitlines() if line.endswith(" @OWNER/TEAM")] == [
        f"# {path} @OWNER/TEAM" for path in ("/approvals.yaml", "/policies/", *owned)
    ]
    assert "# Replace @OWNER/TEAM by a user or team, and remove the comment signs:\n" in unnamed


@pytest.mark.parametrize(
    ("text", "is_valid"),
    [
        ("@octo", True),
        ("@octo/platform @a.b/c-d/e a@b.example", True),
        ("", False),
        ("  ", False),
        ("octo", False),
        ("@octo platform", False),
        ("@octo\n@b", False),
        ("@octo\x1b", False),
        ("a@b", False),
        ("@octo #x", False),
    ],
)
def test_owners_are_users_teams_or_mail_addresses(text: str, is_valid: bool) -> None:
    assert (pipelines.check_approvers(text) is None) is is_valid


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("reconciler", None),
        ("reconciler==0.1", None),
        ("reconciler[a,b]~=0.1", None),
        ("https://example.com/r.whl", None),
        ("git+ssh://git@example.com/r@0f", None),
        ("reconciler @ https://example.com/r.whl", None),
        ("reconciler @ git+ssh://git@example.com/r@0f", None),
        ("wheels/r.whl", None),
        ("./r", None),
        ("", "is not a package requirement"),
        (" reconciler", "is not a package requirement"),
        ("reconciler ", "is not a package requirement"),
        ("recon\nciler", "is not a package requirement"),
        ("--index-url=https://x", "is not a package requirement"),
        ("-r/requirements.txt", "is not a package requirement"),
        ("https://[x/r.whl", "is not a package requirement"),
        ("https://${TOKEN}@example.com/r", "contains $, which the CI system would expand; write %24"),
        ("https://me@example.com/r", "would write a user or password into the repository; remove them"),
        ("https://:pw@example.com/r", "would write a user or password into the repository; remove them"),
        ("git+ssh://me:pw@example.com/r", "would write a user or password into the repository; remove them"),
        ("reconciler @ https://me:pw@example.com/r", "would write a user or password into the repository; remove them"),
    ],
)
def test_a_package_is_a_requirement_without_secrets(text: str, wrong: str | None) -> None:
    problem = pipelines.check_package(text)
    assert problem == wrong or (wrong and problem and problem.startswith(wrong)), problem


@pytest.mark.parametrize(
    ("package", "expected"),
    [
        ("reconciler", "reconciler[postgres]"),
        ("reconciler[]", "reconciler[postgres]"),
        ("reconciler[ b , a,]==1", "reconciler[b,a,postgres]==1"),
        ("reconciler[postgres,a]", "reconciler[postgres,a]"),
        ("https://e.com/r.whl", "reconciler[postgres] @ https://e.com/r.whl"),
        ("./wheels/r.whl", "./wheels/r.whl[postgres]"),
        ("./wheels/r.whl[a]", "./wheels/r.whl[a]"),
    ],
)
def test_the_extra_for_the_store_is_added_once(package: str, expected: str) -> None:
    assert pipelines.with_store(package) == expected


def test_only_a_package_name_is_searched_in_an_index() -> None:
    assert [
        package
        for package in ("", "reconciler", "ours~=1", "a/r.whl", "https://e.com/r", "r @ https://e.com/r")
        if pipelines.wants_index(package)
    ] == ["reconciler", "ours~=1"]


@pytest.mark.parametrize("host", pipelines.HOSTS)
@pytest.mark.parametrize("environments", [(), ("prod",), ("dev", "Staging EU", "staging-eu", "ünï", "%", "prod")])
def test_pipelines_have_a_part_for_each_environment(host: str, environments: Sequence[str]) -> None:
    files = pipelines.read_pipelines(host, "", environments)
    assert pipelines.PACKAGE_IN[host] in files
    for path, text in files.items():
        assert "for each environment" not in text
        assert "end of the environments" not in text
        assert "after the previous environment" not in text
        assert "-previous" not in text
        assert "\n\n\n" not in text
        assert text.endswith("\n")
        assert not text.endswith("\n\n")
        if path.endswith((".yml", ".yaml")):
            yaml.safe_load(text)
    text = "\n".join(files.values())
    selected = re.findall(r'RECONCILER_ENV(?:: |=)"([^"]*)"', text)
    assert set(selected) == (set(environments) or {""})
    assert pipelines.is_mentioned(host, files[pipelines.PACKAGE_IN[host]]) is False
    named = pipelines.read_pipelines(host, "reconciler==1", environments)
    assert pipelines.is_mentioned(host, named[pipelines.PACKAGE_IN[host]]) is True
    assert {path for path in files if files[path] != named[path]} == {pipelines.PACKAGE_IN[host]}
    assert '"reconciler[postgres]==1"' in named[pipelines.PACKAGE_IN[host]]


@pytest.mark.parametrize(("host", "file"), [("github", ".github/workflows/apply.yml"), ("gitlab", ".gitlab-ci.yml")])
@pytest.mark.parametrize(
    ("names", "ids"),
    [
        (
            ("dev", "Staging EU", "staging-eu", "%", "prod"),
            ("dev", "staging-eu", "staging-eu-3", "environment", "prod"),
        ),
        (("a-3", "a", "A"), ("a-3", "a", "a-3-3")),
    ],
)
def test_each_environment_waits_for_the_one_before_and_has_a_key_of_its_own(
    host: str, file: str, names: Sequence[str], ids: Sequence[str]
) -> None:
    files = pipelines.read_pipelines(host, "", names)
    written: dict[str, Any] = yaml.safe_load(files[file])
    jobs = {name: job for name, job in written.get("jobs", written).items() if name.startswith("apply-")}
    assert list(jobs) == [f"apply-{id}" for id in ids]
    assert [job["environment"] for job in jobs.values()] == list(names)
    assert [job.get("needs") for job in jobs.values()] == [None, *([f"apply-{id}"] for id in ids[:-1])]
    text = "\n".join(files.values())
    for id in ids:
        variable = f"RECONCILER_READ_KEY_{id.upper().replace('-', '_')}"
        assert (f"secrets.{variable} || secrets.RECONCILER_READ_KEY" if host == "github" else variable) in text
    assert "{RECONCILER_READ_KEY_PRODUCTION" not in text


WORDS = ("production", "previous", "eu", "RECONCILER_ENV", "RECONCILER_READ_KEY", "PRODUCTION", "secrets", "1")
NAMES = st.one_of(
    st.tuples(st.sampled_from(WORDS), st.sampled_from("-._"), st.sampled_from(WORDS)).map("".join),
    st.from_regex(r"[A-Za-z0-9][A-Za-z0-9._-]{0,20}", fullmatch=True),
)


@given(st.lists(NAMES, min_size=1, max_size=4, unique=True))
@example(["pre-production"])
@example(["production", "production-eu"])
@example(["production-eu", "eu-production", "production.us", "production"])
@example(["a-previous", "previous"])
def test_each_environment_has_its_own_part_with_any_name(names: list[str]) -> None:
    assert [environments.check_name(name) for name in names] == [None] * len(names)
    files = pipelines.read_pipelines("github", "", names)
    read = {path.rpartition("/")[2]: yaml.safe_load(text) for path, text in files.items()}
    jobs = _check_apply_jobs(read["apply.yml"]["jobs"], names)
    assert [_select_lines(job["steps"], "Apply") for job in jobs] == [[name] for name in names]
    for file, job, step in (
        ("plan.yml", "plan", "Plan"),
        ("plan.yml", "fork", "Plan"),
        ("drift.yml", "drift", "Drift"),
        ("snapshot.yml", "snapshot", "Snapshot"),
    ):
        assert _select_lines(read[file]["jobs"][job]["steps"], step) == names
    keys = re.findall(r"secrets\.(\w+) \|\| secrets\.RECONCILER_READ_KEY }}", files[".github/workflows/drift.yml"])
    assert len(set(keys)) == len(names)

    text = pipelines.read_pipelines("gitlab", "", names)[".gitlab-ci.yml"]
    read = yaml.safe_load(text)
    jobs = _check_apply_jobs({name: job for name, job in read.items() if name.startswith("apply-")}, names)
    assert [job["variables"]["RECONCILER_ENV"] for job in jobs] == names
    for job in ("plan", "drift"):
        script = "\n".join(read[job]["script"])
        assert re.findall(r'RECONCILER_ENV="([^"]*)"', script) == names
        found = re.findall(r'RECONCILER_API_KEY="\$\{(\w+):-\$RECONCILER_READ_KEY\}"', script)
        assert found == keys


def _check_apply_jobs(jobs: dict[str, Any], names: Sequence[str]) -> list[Any]:
    """The jobs that apply, each of which needs the previous one."""
    ids = list(jobs)
    assert [job["environment"] for job in jobs.values()] == names
    assert [job.get("needs") for job in jobs.values()] == [None, *([id] for id in ids[:-1])]
    plans = [set(re.findall(r"plan-[\w-]+\.json", str(job))) for job in jobs.values()]
    assert plans == [{f"plan-{id.removeprefix('apply-')}.json"} for id in ids]
    return list(jobs.values())


def _select_lines(steps: Sequence[Any], name: str) -> list[str]:
    """The environments that steps select: `Plan` stands for `Plan staging` and `Plan production`."""
    return [step["env"]["RECONCILER_ENV"] for step in steps if step.get("name", "").split(" ")[0] == name]
