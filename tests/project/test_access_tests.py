"""The files of access tests: which are read, in which environment, and their limits."""

from __future__ import annotations

from pathlib import Path

import pytest

from reconciler.model.problem import Rejected
from reconciler.project.access_tests import MAX_TESTS, load_tests
from reconciler.project.manifests.load import load_manifests
from reconciler.project.settings.config import load_config

TEST = "- {from: 203.0.113.9, to: https://%s.example.com, expect: deny}\n"


def write(root: Path, files: dict[str, str]) -> Path:
    for path, text in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)
    return root


def list_targets(root: Path, environment: str | None = None) -> list[str]:
    return [test.target for test in load_tests(root, environment)]


def test_tests_are_read_from_the_file_and_from_all_files_of_the_folder(tmp_path: Path) -> None:
    texts = {
        "tests/access.yaml": TEST % "a" + TEST % "b",
        "tests/access/team/shop.yml": TEST % "c",
        "tests/access/.hidden.yaml": "{",
        "tests/other.yaml": "{",
        "tests/access/README.md": "{",
    }
    found = load_tests(write(tmp_path, texts))
    assert [test.target for test in found] == [f"https://{name}.example.com" for name in "abc"]
    assert [str(test.position) for test in found] == [
        "tests/access.yaml:1:3",
        "tests/access.yaml:2:3",
        "tests/access/team/shop.yml:1:3",
    ]


PLACES = [f"tests/access{place}.{end}" for place in ("", "/shop", "/team/shop") for end in ("yaml", "yml")]


def test_tests_are_read_from_each_place_and_from_all_together(tmp_path: Path) -> None:
    for number, place in enumerate(PLACES):
        only = write(tmp_path / f"only{number}", {place: TEST % "a"})
        assert [str(test.position) for test in load_tests(only)] == [f"{place}:1:3"]
    together = write(tmp_path / "all", {place: TEST % f"host{number}" for number, place in enumerate(PLACES)})
    assert sorted(str(test.position) for test in load_tests(together)) == sorted(f"{place}:1:3" for place in PLACES)


def test_a_mistake_is_reported_in_each_place(tmp_path: Path) -> None:
    root = write(tmp_path, dict.fromkeys(PLACES, "- {}\n"))
    with pytest.raises(Rejected) as refused:
        load_tests(root)
    assert {problem.position.file for problem in refused.value.problems if problem.position} == {*PLACES}


def test_a_project_without_tests_and_an_empty_file_have_none(tmp_path: Path) -> None:
    assert load_tests(tmp_path) == ()
    assert load_tests(write(tmp_path, {"tests/access.yaml": "# none yet\n"})) == ()


def test_a_test_with_env_is_run_in_that_environment_only(tmp_path: Path) -> None:
    text = TEST % "everywhere" + (TEST % "prod").replace("}", ", env: prod}")
    names = {"environments/prod.yaml": "variables: {}\n", "environments/dev.yaml": "variables: {}\n"}
    root = write(tmp_path, {"tests/access.yaml": text, **names})
    assert list_targets(root, "prod") == ["https://everywhere.example.com", "https://prod.example.com"]
    assert list_targets(root, "dev") == ["https://everywhere.example.com"]
    assert list_targets(root) == ["https://everywhere.example.com"]


def test_files_of_tests_are_no_manifests_even_if_the_whole_project_is_a_folder_of_manifests(tmp_path: Path) -> None:
    texts = {
        "reconciler.yaml": "stack: shop\nmanifests: [infra]\n",
        "infra/a.yaml": "kind: IPPolicy\nname: office\nspec: {description: base}\n",
        **dict.fromkeys(PLACES, TEST % "a"),
    }
    root = write(tmp_path, texts)
    assert load_manifests(load_config(root, {}), {}).files == ("infra/a.yaml",)
    write(root, {"reconciler.yaml": "stack: shop\nmanifests: [infra, tests]\n"})
    assert load_manifests(load_config(root, {}), {}).files == ("infra/a.yaml",)


@pytest.mark.parametrize("place", ["tests/access.yaml", "tests/access.yml", "tests/access"])
def test_tests_that_lead_out_of_the_project_are_refused(tmp_path: Path, place: str) -> None:
    outside = tmp_path / "outside"
    write(outside, {"a.yaml": TEST % "a"})
    root = write(tmp_path / "project", {"tests/keep.txt": ""})
    (root / place).symlink_to(outside / "a.yaml" if "." in place else outside)
    with pytest.raises(Rejected) as refused:
        load_tests(root)
    assert [problem.code for problem in refused.value.problems] == ["path-outside-project"]


def write_entry(urls: int) -> str:
    hosts = ", ".join(f"https://h{number}.example.com" for number in range(urls))
    return f"- {{from: 203.0.113.9, to: [{hosts}], expect: deny}}\n"


FULL = write_entry(100) * (MAX_TESTS // 100)


@pytest.mark.parametrize(
    ("files", "is_allowed"),
    [
        ([FULL], True),
        ([FULL, "[]"], True),
        ([FULL + TEST % "one"], False),
        ([FULL, TEST % "one"], False),
        ([FULL, TEST % "one" * 50], False),
        ([write_entry(100) * (MAX_TESTS // 100 - 1), write_entry(99), TEST % "one"], True),
        ([TEST % "one" + FULL], False),  # its last entry has more URLs than are left
        ([write_entry(100) * (MAX_TESTS // 100 - 1), write_entry(99), write_entry(2)], False),
    ],
)
def test_more_tests_than_the_limit_are_refused(tmp_path: Path, files: list[str], is_allowed: bool) -> None:
    write(tmp_path, {f"tests/access/{number}.yaml": text for number, text in enumerate(files)})
    if is_allowed:
        assert len(load_tests(tmp_path)) == MAX_TESTS
        return
    with pytest.raises(Rejected) as refused:
        load_tests(tmp_path)
    assert [problem.code for problem in refused.value.problems] == ["limit-exceeded"]


def test_a_test_written_as_an_alias_has_the_position_of_its_list_entry(tmp_path: Path) -> None:
    text = "- &one {from: 203.0.113.9, to: https://a.example.com, expect: deny}\n- *one\n"
    found = load_tests(write(tmp_path, {"tests/access.yaml": text}))
    assert [test.position.line for test in found] == [1, 2]
