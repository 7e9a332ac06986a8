"""Fleet files, members in three formats, and waves. Invalid fleet files are in `mistakes/fleet`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from reconciler.model.fleet import Amount, FleetGuards, KeyMethod, KeySource, Member, Wave, WorkerRule
from reconciler.model.problem import Position, Rejected
from reconciler.project.fleets.load import find_fleet_file, load_fleet
from reconciler.project.fleets.waves import assign_waves
from tests.harness.steps import count_steps

KEY = "api_key: {from_env: 'KEY_${{ member.name }}'}\n"
HEAD = f"version: 1\nfleet: shops\n{KEY}"  # three lines
TWO = "members: [{name: berlin, labels: {tier: gold}}, {name: paris, labels: {tier: silver}}]\n"  # the fourth


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in (".", "base", "shop"):
        (tmp_path / name).mkdir(exist_ok=True)
        (tmp_path / name / "reconciler.yaml").write_text("stack: s\n")
    return tmp_path


def problems(folder: Path, text: str) -> list[str]:
    """The problems of a fleet file, or the warnings of a valid one, as lines with their codes."""
    (folder / "fleet.yaml").write_text(text)
    try:
        found = load_fleet(folder).warnings
    except Rejected as rejected:
        found = rejected.problems
    return [f"{problem} [{problem.code}]" for problem in found]


def test_all_fields_of_a_fleet_file_are_read(folder: Path) -> None:
    (folder / "fleet.yaml").write_text(
        """\
version: 1
fleet: shops
members:
  - {name: berlin, labels: {tier: gold, region: eu}, variables: {domain: b.example.com, size: 3}}
  - {name: new-york, labels: {tier: silver, region: us}}
projects:
  - {name: base, path: base}
  - {name: shop, path: shop, after: [base], select: {tier: [gold, silver]}, environment: prod}
api_key:
  from_vault: {path: "fleet/${{ member.labels.region }}/${{ member.name }}", field: key, mount: kv}
waves:
  - {name: canary, select: {tier: gold}, max_failures: 0, approve: true}
  - {name: half, percent: 50, max_failures: 5%, min_success_time: 10m, progress_deadline: 1h}
guards: {max_changed: 20%, max_deletes: 5}
workers:
  - {select: {region: eu}, needs: keys-eu}
limits: {members_at_once: 4, start_spread: 30s}
store: postgresql://db/fleet
"""
    )
    fleet = load_fleet(folder)
    assert fleet.name == "shops"
    assert fleet.members["berlin"].variables == {"domain": "b.example.com", "size": 3}
    assert fleet.members["new-york"].labels == {"tier": "silver", "region": "us"}
    assert [(one.path, one.after, one.environment) for one in fleet.projects.values()] == [
        ("base", (), None),
        ("shop", ("base",), "prod"),
    ]
    assert fleet.projects["shop"].select == {"tier": ("gold", "silver")}
    assert fleet.api_key.method is KeyMethod.VAULT
    assert (fleet.api_key.mount, fleet.api_key.field) == ("kv", "key")
    assert fleet.api_key.locate(fleet.members["berlin"]) == "fleet/eu/berlin"
    assert fleet.waves == (
        Wave("canary", {"tier": ("gold",)}, approve=True),
        Wave("half", {}, 50, Amount(5, is_percent=True), 600.0, 3600.0),
        Wave("rest"),
    )
    assert fleet.guards == FleetGuards(Amount(20, is_percent=True), 5)
    assert fleet.workers == (WorkerRule({"region": ("eu",)}, "keys-eu"),)
    assert (fleet.members_at_once, fleet.start_spread, fleet.store) == (4, 30.0, "postgresql://db/fleet")
    assert fleet.warnings == ()


def test_the_defaults_are_one_project_and_one_wave(folder: Path) -> None:
    (folder / "fleet.yaml").write_text(HEAD + TWO)
    fleet = load_fleet(folder)
    assert [(project.name, project.path) for project in fleet.projects.values()] == [("main", ".")]
    assert fleet.waves == (Wave("all"),)
    assert fleet.api_key == KeySource(KeyMethod.ENV, "KEY_${{ member.name }}")
    assert fleet.api_key.locate(Member("new-york.2")) == "KEY_NEW_YORK_2"


def test_a_last_wave_without_selector_is_the_last(folder: Path) -> None:
    (folder / "fleet.yaml").write_text(f"{HEAD}{TWO}waves: [{{name: one, percent: 1}}, {{name: two, approve: true}}]\n")
    assert [wave.name for wave in load_fleet(folder).waves] == ["one", "two"]


def test_no_message_contains_a_key(folder: Path) -> None:
    for key in ("Zx9secret", "{from_env: Zx9-secret}", "{key: Zx9secret}", "{from_env: [Zx9secret]}", "[Zx9secret]"):
        found = problems(folder, f"version: 1\nfleet: shops\napi_key: {key}\n{TWO}")
        assert found
        assert "Zx9" not in "".join(found)


# --- files of members -------------------------------------------------------------------------------------------------

CSV = "name,labels.tier,variables.domain\nberlin,gold,b.example.com\n\nparis , silver,\n"
JSON = json.dumps(
    [
        {"name": "berlin", "labels": {"tier": "gold"}, "variables": {"domain": "b.example.com"}},
        {"name": "paris", "labels": {"tier": "silver"}},
    ],
    indent=1,
)
YAML = """\
- {name: berlin, labels: {tier: gold}, variables: {domain: b.example.com}}
- {name: paris, labels: {tier: silver}}
"""


@pytest.mark.parametrize(("name", "text"), [("m.csv", CSV), ("m.json", JSON), ("m.yaml", YAML), ("deep/m.csv", CSV)])
def test_members_are_read_from_csv_json_and_yaml(folder: Path, name: str, text: str) -> None:
    (folder / "deep").mkdir()
    (folder / name).write_text(text)
    (folder / "fleet.yaml").write_text(f"{HEAD}members: {name}\n")
    members = load_fleet(folder).members
    assert {one.name: (dict(one.labels), dict(one.variables)) for one in members.values()} == {
        "berlin": ({"tier": "gold"}, {"domain": "b.example.com"}),
        "paris": ({"tier": "silver"}, {}),
    }


@pytest.mark.parametrize(
    ("name", "text", "line", "column"),
    [("m.csv", CSV, 4, 1), ("m.json", JSON, 11, 2), ("m.yaml", YAML, 2, 3), ("fleet.yaml", HEAD + TWO, 4, 49)],
)
def test_a_member_has_the_position_of_its_entry(folder: Path, name: str, text: str, line: int, column: int) -> None:
    (folder / "fleet.yaml").write_text(f"{HEAD}members: {name}\n")
    (folder / name).write_text(text)
    assert load_fleet(folder).members["paris"].position == Position(name, line, column)


FILES = [
    (
        "m.csv",
        "name,labels.a,,\na,b,,\nc,d,e,\n",
        ("m.csv:3:1: a column has no name; name the column in the first line, or remove the cell [invalid-csv]"),
    ),
    (
        "m.json",
        '[{"name": "a"},\n {"name": "b", "variables": {"x": 1e999}}]',
        ("m.json:2:35: number too large; quote it if it is text [unsupported-yaml]"),
    ),
    (
        "m.json",
        '[{"name": "a", "variables": {"x": ' + "9" * 5000 + "}}]",
        ("m.json:1:35: a number of more than 300 digits; quote it if it is text [unsupported-yaml]"),
    ),
    (
        "m.json",
        '[{"name": "a", "variables": {"x": "\\ud800"}}]',
        (
            "m.json:1:38: invalid YAML: an escape in double quotes is not a character; write the code of a whole "
            "character; half of a surrogate pair is none [invalid-yaml]"
        ),
    ),
    (
        "m.csv",
        "",
        (
            "m.csv:1:1: expected a header, found an empty file; name columns `name`, `labels.NAME` or "
            "`variables.NAME` [invalid-csv]"
        ),
    ),
    (
        "m.csv",
        "name;labels.tier\na;b\n",
        ("m.csv:1:1: columns are separated with ';'; save the file with commas [invalid-csv]"),
    ),
    ("m.csv", "nmae\na\n", ("m.csv:1:1: unknown column 'nmae'; did you mean name? [unknown-field]")),
    (
        "m.csv",
        "name,tier\na,b\n",
        ("m.csv:1:1: unknown column 'tier'; write labels.tier or variables.tier [unknown-field]"),
    ),
    (
        "m.csv",
        "name,label.tier\na,b\n",
        ("m.csv:1:1: unknown column 'label.tier'; did you mean labels.tier? [unknown-field]"),
    ),
    ("m.csv", "name,name\na,b\n", ("m.csv:1:1: duplicate column 'name'; remove one of the two [duplicate-key]")),
    (
        "m.csv",
        "labels.tier\na\n",
        (
            "m.csv:1:1: there is no column `name`; name columns `name`, `labels.NAME` or `variables.NAME` "
            "[missing-field]"
        ),
    ),
    (
        "m.csv",
        "name,labels.tier\na,b\nc\n",
        (
            "m.csv:3:1: expected 2 cells, found 1 cell; write one cell for each column of the first line, and quote "
            "cells that contain a comma [invalid-csv]"
        ),
    ),
    (
        "m.csv",
        'name,variables.tier\na,"b\nc"\nB,x\n',
        (
            "m.csv:4:1: name: 'B' is not a valid name; use up to 63 lower-case letters, digits, '.', '_' and '-', "
            "beginning with a letter or digit [invalid-value]"
        ),
    ),
    (
        "m.csv",
        "name\na\nb\na\n",
        (
            "m.csv:4:1: name: duplicate member a, first at line 2; rename one of the two, or remove it "
            "[duplicate-member]"
        ),
    ),
    (
        "m.csv",
        'name\n"a\n',
        (
            "m.csv:2:1: invalid CSV: unexpected end of data; quote a cell that contains a comma, a line break or "
            "quotes, and double the quotes inside [invalid-csv]"
        ),
    ),
    (
        "m.json",
        "{}",
        ("m.json:1:1: expected a list of members, found a map; write a list of {name, labels, variables} [wrong-type]"),
    ),
    (
        "m.json",
        '[{"name": "a"}\n {"name": "b"}]',
        ("m.json:2:2: invalid JSON: Expecting ',' delimiter; correct the file at this position [invalid-json]"),
    ),
    (
        "m.json",
        '[{"name": "a"},\n {name: "b"}]',
        (
            "m.json:2:3: invalid JSON: Expecting property name enclosed in double quotes; correct the file at this "
            "position [invalid-json]"
        ),
    ),
    (
        "m.json",
        '[{"name": "a", "name": "b"}]',
        ("m.json:1:16: duplicate key 'name', first at line 1, column 3; remove one of the two [duplicate-key]"),
    ),
    (
        "m.json",
        '[{"name": "a"}] x',
        ("m.json:1:17: invalid JSON: Extra data; correct the file at this position [invalid-json]"),
    ),
    (
        "m.json",
        '[{"name": "a"},\n {"name": "b", "tier": "x"}]',
        ("m.json:2:16: tier: unknown field; use name, labels or variables [unknown-field]"),
    ),
    (
        "m.json",
        "[" * 100_000,
        ("m.json:1:65: nested deeper than 64 levels; reduce the nesting [limit-exceeded]"),
    ),
    (
        "m.yaml",
        "name: a\n",
        ("m.yaml:1:1: expected a list of members, found a map; write a list of {name, labels, variables} [wrong-type]"),
    ),
    (
        "m.yaml",
        "- {name: a}\n- {nmae: b, name: c}\n",
        ("m.yaml:2:4: nmae: unknown field; did you mean name? [unknown-field]"),
    ),
]


@pytest.mark.parametrize(("name", "text", "expected"), FILES)
def test_a_mistake_in_a_file_of_members_has_its_line(folder: Path, name: str, text: str, expected: str) -> None:
    (folder / name).write_text(text)
    found = problems(folder, f"{HEAD}members: {name}\n")
    assert [one.replace("\\n", " ") for one in found] == [expected]


def test_byte_order_marks_and_empty_cells_of_spreadsheets_are_ignored(folder: Path) -> None:
    (folder / "m.csv").write_bytes(b"\xef\xbb\xbfname,labels.tier,,\r\na,gold,,\r\n,,,\r\n")
    (folder / "fleet.yaml").write_text(f"{HEAD}members: m.csv\n")
    assert {name: one.labels for name, one in load_fleet(folder).members.items()} == {"a": {"tier": "gold"}}


def test_a_project_is_not_behind_a_symlink_that_leads_outside(
    folder: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    outside = tmp_path_factory.mktemp("outside")
    (outside / "reconciler.yaml").write_text("stack: s\n")
    (folder / "link").symlink_to(outside)
    assert problems(folder, f"{HEAD}{TWO}projects: [{{name: a, path: link}}]\n") == [
        "fleet.yaml:5:28: projects[0].path: link is a symlink to a place outside the folder of the fleet file; copy "
        "the project [path-outside-project]"
    ]


def test_a_fleet_has_at_most_100_waves(folder: Path) -> None:
    waves = "".join(f"  - {{name: w{n}, percent: 1}}\n" for n in range(101))
    assert problems(folder, f"{HEAD}{TWO}waves:\n{waves}") == [
        "fleet.yaml:106:5: waves[100]: more than 100 waves; remove some, or split the fleet [limit-exceeded]"
    ]


def test_loading_takes_steps_in_proportion_to_the_members(folder: Path) -> None:
    def write(number: int) -> None:
        rows = "".join(f"shop-{n},{'gold' if n % 9 else 'silver'},eu,s{n}.example.com\n" for n in range(number))
        (folder / "m.csv").write_text(f"name,labels.tier,labels.region,variables.domain\n{rows}")
        (folder / "fleet.yaml").write_text(f"{HEAD}members: m.csv\nwaves: [{{name: a, select: {{tier: silver}}}}]\n")

    def steps(number: int) -> int:
        write(number)
        return count_steps(lambda: load_fleet(folder))

    steps(1)  # fills the caches
    assert steps(2_000) < 2.3 * steps(1_000)
    write(10_000)
    assert len(load_fleet(folder).members) == 10_000


# --- waves ------------------------------------------------------------------------------------------------------------


def test_members_of_a_wave_are_drawn_in_a_stable_order(folder: Path) -> None:
    (folder / "m.csv").write_text(
        "name,labels.tier\n" + "".join(f"m{n:03},{'gold' if n < 5 else ''}\n" for n in range(100))
    )
    (folder / "fleet.yaml").write_text(
        f"{HEAD}members: m.csv\nwaves: [{{name: a, select: {{tier: gold}}}}, {{name: b, percent: 10}}]\n"
    )
    fleet = load_fleet(folder)
    members = list(fleet.members.values())
    assigned = assign_waves(fleet, members)
    by_wave = [[name for name, wave in assigned.items() if wave == index] for index in range(3)]
    assert by_wave[0] == [f"m{n:03}" for n in range(5)]
    assert [len(one) for one in by_wave] == [5, 10, 85]
    assert by_wave[1] != [f"m{n:03}" for n in range(5, 15)]
    assert assign_waves(fleet, list(reversed(members))) == assigned


def test_a_selection_of_members_is_assigned_to_waves(folder: Path) -> None:
    (folder / "fleet.yaml").write_text(f"{HEAD}{TWO}waves: [{{name: a, percent: 1}}]\n")
    fleet = load_fleet(folder)
    assert sorted(assign_waves(fleet, list(fleet.members.values())).values()) == [0, 1]
    assert assign_waves(fleet, [fleet.members["paris"]]) == {"paris": 0}  # at least one
    assert assign_waves(fleet, []) == {}


# --- where it is ------------------------------------------------------------------------------------------------------


def test_the_nearest_file_above_is_found(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / ".git").mkdir()
    with pytest.raises(Rejected, match=r"there is no fleet\.yaml here, nor in a folder above"):
        find_fleet_file(folder / "shop")
    (folder / "fleet.yaml").write_text(HEAD + TWO)
    monkeypatch.chdir(folder / "shop")
    assert find_fleet_file(Path()) == Path("../fleet.yaml")
    assert find_fleet_file(folder).samefile(folder / "fleet.yaml")


def test_paths_are_relative_to_the_fleet_file(folder: Path) -> None:
    (folder / "shop/eu.yaml").write_text(f"{HEAD}members: m.csv\n")
    (folder / "shop/m.csv").write_text("name\nA\n")
    with pytest.raises(Rejected, match=r"shop/m\.csv:2:1: name: 'A' is not a valid name"):
        load_fleet(folder, "shop/eu.yaml")
    (folder / "shop/m.csv").write_text("name\na\n")
    assert list(load_fleet(folder, "shop/eu.yaml").members) == ["a"]


# --- the whole --------------------------------------------------------------------------------------------------------

MANY = "members: [" + ", ".join(f"{{name: m{n:02}, labels: {{n: 'v{n:02}'}}}}" for n in range(12)) + "]\n"
FEW = "members: [{name: a, labels: {t: x}}, {name: b, labels: {t: x}}, {name: c, labels: {t: y}}, {name: d}]\n"

WHOLE = [
    (FEW + "projects: [{name: p, select: {t: x}}, {name: q, select: {t: y}}]\n", []),
    (FEW + "projects: [{name: p, environment: dev}, {name: q, environment: prod}, {name: r}]\n", []),
    (FEW + "projects: [{name: p, after: [r, q]}, {name: q, path: base, after: [r]}, {name: r, path: shop}]\n", []),
    (MANY + "waves: [{name: w, select: {n: zzz}}]\n", ["no member has n: zzz; correct it, or label members so"]),
    (
        MANY + "workers: [{select: {n: v01}, needs: a}, {select: {n: zzz}, needs: b}]\n",
        ["workers[1].select.n: no member"],
    ),
    (
        MANY + "projects: [{name: p, select: {name: m0*}}, {name: q, path: base, select: {name: x*}}]\n",
        ["projects[1].sel"],
    ),
    (MANY + "projects: [{name: p, select: {name: m0*, n: v11}}]\n", ["projects[0].select: no member has all of these"]),
    (MANY + "waves: [{name: v, percent: 1}, {name: w, percent: 1}, {name: x, select: {name: '*'}}]\n", []),
    (
        MANY + "waves: [{name: v, percent: 99}, {name: w, percent: 1}, {name: x, select: {name: '*'}, percent: 1}]\n",
        [
            "waves[2]: all members that x selects are in earlier waves",
        ],
    ),
    (MANY + "waves: [{name: v, select: {name: '*'}}, {name: w}]\n", []),
    (
        MANY + "waves: [{name: v, percent: 100}, {name: w}]\n",
        ["fleet.yaml:5:9: waves[0]: v takes all members, and leaves"],
    ),
    (MANY + "waves: [{name: v, percent: 1}, {name: rest, percent: 100}]\n", []),
    (MANY + "waves: [{name: v, percent: 1}, {name: rest}]\n", []),
]


@pytest.mark.parametrize(("text", "expected"), WHOLE)
def test_a_fleet_is_checked_as_a_whole(folder: Path, text: str, expected: list[str]) -> None:
    found = problems(folder, HEAD + text)
    assert len(found) == len(expected), found
    for one, part in zip(found, expected, strict=True):
        assert part in one


@pytest.mark.parametrize(
    "members", ["[{name: a, labels: {t: x}}, {name: b, labels: {t: y}}]", "[{name: a, labels: {t: ./x}}]"]
)
def test_a_key_of_one_member_each_is_accepted(folder: Path, members: str) -> None:
    text = f"version: 1\nfleet: shops\napi_key: {{from_env: 'K_${{{{ member.labels.t }}}}'}}\nmembers: {members}\n"
    assert problems(folder, text) == []


def test_members_with_one_key_may_have_different_projects(folder: Path) -> None:
    head = "version: 1\nfleet: shops\napi_key: {from_env: K}\nmembers: [{name: a}, {name: b}]\n"
    projects = "projects: [{name: p, select: {name: a}}, {name: q, path: base, select: {name: b}}]\n"
    assert problems(folder, head + projects) == []


def test_at_most_20_shared_keys_are_reported(folder: Path) -> None:
    members = ", ".join(f"{{name: m{n}, labels: {{t: 'v{n // 2}'}}}}" for n in range(44))
    text = f"version: 1\nfleet: shops\napi_key: {{from_env: 'K_${{{{ member.labels.t }}}}'}}\nmembers: [{members}]\n"
    assert len(problems(folder, text)) == 20


@pytest.mark.parametrize(
    ("section", "entry"),
    [
        ("projects", "{{name: p{0}, path: base, environment: e{0}}}"),
        ("workers", "{{select: {{name: '*'}}, needs: n{0}}}"),
    ],
)
def test_a_section_has_at_most_100_entries(folder: Path, section: str, entry: str) -> None:
    for count in (100, 101):
        entries = "".join(f"  - {entry.format(number)}\n" for number in range(count))
        found = problems(folder, f"{HEAD}{TWO}{section}:\n{entries}")
        problem = f"fleet.yaml:106:5: {section}[100]: more than 100 {section}; remove some, or split the fleet"
        assert found == ([] if count == 100 else [f"{problem} [limit-exceeded]"])


VALUES = [
    (f"labels: {{{'l' * 63}: x}}", ""),
    (f"labels: {{{'l' * 64}: x}}", " is not a valid label; use up to 63 letters"),
    (f"labels: {{t: {'v' * 1024}}}", ""),
    (f"labels: {{t: {'v' * 1025}}}", "the value of t is not a valid label value; use up to 1024 printable characters"),
    ("variables: {t: {x: 1}}", ""),
    ("variables: {t: {from_env: X, x: 1}}", ""),
    ("variables: {t: [1, {a: b}], _u-v9: 0, w: false, x: ''}", ""),
]


@pytest.mark.parametrize(("entry", "expected"), VALUES)
def test_labels_and_variables_of_a_member(folder: Path, entry: str, expected: str) -> None:
    found = problems(folder, f"{HEAD}members: [{{name: a, {entry}}}]\n")
    assert len(found) == bool(expected), found
    assert expected in "".join(found)


@pytest.mark.parametrize(
    "text",
    [
        "guards: {max_changed: 100%, max_deletes: 0}\n",
        "guards: {max_changed: 0}\n",
        "store: postgresql://me@db/fleet\n",
        "store: state/password=x.db\n",
    ],
)
def test_guards_at_their_limits_and_stores_without_a_password_are_accepted(folder: Path, text: str) -> None:
    assert problems(folder, f"{HEAD}members: [{{name: a}}]\n{text}") == []


SOURCES = [
    ("{from_env: 'K_${{ member.name }}_${{member.labels.t}}'}", "K_A_1_EU_1"),
    ("{from_file: '/k/${{ member.name }}'}", "/k/a.1"),
    ("{from_file: k}", "k"),
    ("{from_vault: {path: 'a/${{ member.name }}'}}", "a/a.1"),
]


@pytest.mark.parametrize(("key", "place"), SOURCES)
def test_the_location_of_a_key_is_derived_from_its_member(folder: Path, key: str, place: str) -> None:
    (folder / "fleet.yaml").write_text(
        f"version: 1\nfleet: shops\napi_key: {key}\nmembers: [{{name: a.1, labels: {{t: eu-1}}}}]\n"
    )
    fleet = load_fleet(folder)
    assert fleet.api_key.locate(fleet.members["a.1"]) == place
    if fleet.api_key.method is KeyMethod.VAULT:
        assert (fleet.api_key.mount, fleet.api_key.field) == ("secret", "value")


# --- more files of members --------------------------------------------------------------------------------------------

MORE_FILES = [
    ("m.json", "[]", ["there are no members"]),
    ("m.json", " [ ] \n", ["there are no members"]),
    ("m.json", '[{"name": "a"} , \n\n {"name": "A"}]', ["m.json:3:11: name: 'A' is not a valid name"]),
    ("m.json", '\n\n[\n{"name": "a"}, {"name": "A"}]', ["m.json:4:25: name: 'A' is not a valid name"]),
    ("m.json", '[{"name": "a"},]', ["m.json:1:16: invalid JSON: Expecting value"]),
    ("m.json", '[{"name": "a"}', ["m.json:1:15: invalid JSON: Expecting ',' delimiter"]),
    ("m.json", "[", ["m.json:1:2: invalid JSON: Expecting value"]),
    ("m.json", "[]x", ["m.json:1:3: invalid JSON: Extra data"]),
    ("m.json", '[{"name": "a", "variables": {"x": NaN}}]', ["m.json:1:35: NaN is not a number of JSON"]),
    ("m.json", '[{"name": "a", "variables": {"x": "\\u00e9", "y": 1.5}}]', []),
    (
        "m.json",
        '[{"name": "a", "variables": {"x": {"k": 1, "k": 2}}}]',
        ["m.json:1:44: duplicate key 'k', first at line 1, column 36"],
    ),
    ("m.json", "", ["m.json:1:1: invalid JSON: Expecting value"]),
    ("m.json", '["a"]', ["m.json:1:2: "]),
    (
        "m.json",
        '[{"name": "a"}, {"name": "b"}, {"name": "a"}]',
        ["m.json:1:41: name: duplicate member a, first at line 1"],
    ),
    (
        "m.json",
        r'[{"name": "a", "variables": {"\ud83d\ude00\\ud83d": "\uD83D\uDE00"}}, {"name": "A"}]',
        ["m.json:1:80: name: 'A' is not a valid name"],
    ),
    (
        "m.json",
        '[{"name": "a"},\n{"name": "b", "variables": {"x": -Infinity}}]',
        ["m.json:2:34: -Infinity is not a number of JSON"],
    ),
    ("m.json", '[{"name": "a", "variables": {"x": "\t"}}]', ["m.json:1:36: invalid JSON: Invalid control character"]),
    ("m.json", '[{"name": "a", "variables": {"x": "\x7f"}}]', ["m.json:1:36: control character U+007F"]),
    ("m.json", '[\t{"name":\t"a"}\r\n]', []),
    ("m.json", "[" + ",\n".join(f'{{"name": "m{n}"}}' for n in range(30)) + "]\n", []),
    ("m.yml", "- {name: a}\n", []),
    ("m.YAML", "- {name: a}\n", []),
    (
        "m.yaml",
        "- {name: a}\n---\n- {name: b}\n",
        ["m.yaml:1:1: expected one document, found 2; write one list of members"],
    ),
    ("m.yaml", "", ["m.yaml:1:1: expected"]),
    ("m.yaml", "- {name: a\n", ["m.yaml:"]),
    ("m.csv", "\n,,\nname,labels.t\n\na,x\n", []),
    ("m.csv", "name,labels.t\na,x,\n", ["m.csv:2:1: expected 2 cells, found 3 cells; write one cell"]),
    ("m.csv", "name,labels.t,labels.u\na\n", ["m.csv:2:1: expected 3 cells, found 1 cell"]),
    ("m.csv", "name,,labels.t\na,,x\nb, ,y\n", []),
    ("m.csv", "name\n\n\nA\n", ["m.csv:4:1: name: 'A' is not a valid name"]),
    ("m.csv", "name,labels\na,x\n", ["m.csv:1:1: unknown column 'labels'; write labels.labels or variables.labels"]),
    ("m.csv", "name,labels.\na,x\n", ["m.csv:1:1: unknown column 'labels.'; "]),
    ("m.csv", "name,.t\na,x\n", ["m.csv:1:1: unknown column '.t'; name columns `name`, `labels.NAME` or"]),
    ("m.csv", "name,x y\na,x\n", ["m.csv:1:1: unknown column 'x y'; name columns `name`"]),
    ("m.csv", "name,a.b,c.d\na,x,y\n", ["unknown column 'a.b'", "unknown column 'c.d'"]),
    ("m.csv", "a.b\nx\n", ["unknown column 'a.b'"]),
    ("m.csv", "name,labels.t,labels.t\na,x,y\n", ["m.csv:1:1: duplicate column 'labels.t'; remove one of the two"]),
    ("m.csv", " name , variables.x \n a , y \n", []),
    ("m.csv", "name;x,labels.t\na,b\n", ["m.csv:1:1: unknown column 'name;x'"]),
    ("m.csv", "a;b\n", ["columns are separated with ';'; save the file with commas"]),
    ("m.csv", "name\n" + "a,b\n" * 101, ["found 2 cells"] * 100),
    ("m.csv", "name\n" + "".join(f"A{n}\n" for n in range(100)), ["is not a valid name"] * 100),
    (
        "m.csv",
        "name\n" + "".join(f"A{n}\n" for n in range(102)),
        [*["is not a valid name"] * 100, "m.csv:102:1: more than 100 problems with members; correct the others first"],
    ),
    (
        "m.csv",
        "name,variables.api_token\na,x\nb,y\nc,\n",
        ["m.csv:2:1: warning: variables.api_token: api_token of 2 mem"],
    ),
]


@pytest.mark.parametrize(
    ("name", "text", "expected"), MORE_FILES, ids=[str(number) for number in range(len(MORE_FILES))]
)
def test_an_invalid_file_of_members_is_reported_with_its_lines(
    folder: Path, name: str, text: str, expected: list[str]
) -> None:
    (folder / name).write_text(text)
    found = problems(folder, f"{HEAD}members: {name}\n")
    assert len(found) == len(expected), found[:3]
    for one, part in zip(found, expected, strict=True):
        assert part in one


def test_json_escapes_of_surrogate_pairs_are_read(folder: Path) -> None:
    (folder / "m.json").write_text(r'[{"name": "a", "variables": {"x": "\ud83d\uDE00 \\ud83d \u00e9\""}}]')
    (folder / "fleet.yaml").write_text(f"{HEAD}members: m.json\n")
    assert load_fleet(folder).members["a"].variables == {"x": '\U0001f600 \\ud83d \u00e9"'}


@pytest.mark.parametrize("name", ["m.csv", "m.json"])
def test_a_file_of_members_that_is_not_text_is_reported(folder: Path, name: str) -> None:
    (folder / name).write_bytes(b"name\n\xff\n")
    (found,) = problems(folder, f"{HEAD}members: {name}\n")
    assert found.startswith(f"{name}:")


def test_cells_are_trimmed_and_empty_cells_are_unset(folder: Path) -> None:
    (folder / "m.csv").write_text('name,labels.t,variables.x,variables.y\n a , u ,"1, 2 ",\nb,,, \n')
    (folder / "fleet.yaml").write_text(f"{HEAD}members: m.csv\n")
    members = load_fleet(folder).members
    assert (members["a"].labels, members["a"].variables) == ({"t": "u"}, {"x": "1, 2"})
    assert (members["b"].labels, members["b"].variables) == ({}, {})
    (folder / "m.json").write_bytes(b'\xef\xbb\xbf[{"name": "a"}]')
    (folder / "fleet.yaml").write_text(f"{HEAD}members: m.json\n")
    assert list(load_fleet(folder).members) == ["a"]
