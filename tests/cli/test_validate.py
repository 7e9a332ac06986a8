"""`validate`: its output and its exit codes."""

from __future__ import annotations

import json
from xml.etree import ElementTree as xml

import pytest

from tests.harness.project import Output, Shell

UNKNOWN = "kind: EventSubscription\nname: s\nsources:\n  all: {type: no_such_thing.v0}\n"
MISTAKE = """\
kind: CloudEndpoint
name: e
spec:
  url: https://e.example.com
  traffic_policy: {on_http_request: [{actions: [{type: deny, config: {a: {ref: IPPolicy/x}}}]}]}
"""


@pytest.mark.parametrize(("manifest", "strict"), [(UNKNOWN, 0), (MISTAKE, 1)], ids=["unknown", "mistake"])
def test_strict_fails_on_certain_mistakes_and_not_on_unknown_types(shell: Shell, manifest: str, strict: int) -> None:
    shell.write("manifests/one.yaml", manifest)
    assert shell("validate").code == 0
    result = shell("validate", "--strict")
    assert result.code == strict
    assert ("--strict does not allow these warnings: policy-expression-source" in result.err) == bool(strict)


def test_a_warning_in_the_log_has_its_code(shell: Shell) -> None:
    shell.write("manifests/one.yaml", UNKNOWN)
    result = shell("validate", "--log-format", "json")
    assert json.loads(result.err.splitlines()[0])["code"] == "unknown-event-type"


def test_an_error_in_the_log_has_its_code_and_its_values(shell: Shell) -> None:
    shell.write("manifests/one.yaml", "kind: TLSEdge\nname: a\nspec: {hostprots: []}\n")
    result = shell("validate", "--log-format", "json")
    entry = json.loads(result.err.splitlines()[0])
    assert (entry["code"], entry["values"]) == ("unknown-field", {"field": "hostprots", "suggestion": "hostports"})


def test_a_long_list_of_problems_is_truncated_with_a_count(shell: Shell) -> None:
    wrong = "".join(f"---\nkind: TLSEdge\nname: a{number}\nspec: {{hostprots: []}}\n" for number in range(1000))
    shell.write("manifests/one.yaml", wrong)
    *lines, more, tally = shell("validate").err.splitlines()
    assert len(lines) == 100
    assert (more, tally) == ("… and 900 more problems; --log-format json prints all of them", "1000 errors")
    log = shell("validate", "--log-format", "json").err.splitlines()
    assert len([line for line in log if "unknown-field" in line]) == 1000
    for words in (["plan"], ["apply", "-y"], ["drift"], ["graph"]):
        assert len(shell(*words).err) < 20_000


def test_a_long_list_of_warnings_does_not_hide_an_error(shell: Shell) -> None:
    one = "---\nkind: EventSubscription\nname: s%d\nsources: {all: {type: no_such_thing.v0}}\n"
    shell.write("manifests/one.yaml", "".join(one % number for number in range(150)))
    shell.write("manifests/two.yaml", "kind: TLSEdge\nname: a\nspec: {hostprots: []}\n")
    *lines, more, tally = shell("validate").err.splitlines()
    assert lines[-1].startswith("manifests/two.yaml:3:")
    assert (len(lines), more.split(";")[0], tally) == (100, "… and 51 more problems", "1 error, 150 warnings")


def test_more_problems_than_the_limit_are_reported_as_such(shell: Shell) -> None:
    wrong = "kind: TLSEdge\nname: 'a${{ each.key }}'\nfor_each: [%s]\nspec: {hostprots: [], x: 1, y: 2}\n"
    shell.write("manifests/one.yaml", wrong % ", ".join(map(str, range(3500))))
    result = shell("validate", "--log-format", "json").err
    assert "more than 10,000 problems in this project; correct these first" in result
    assert len(result.splitlines()) < 10_100


def test_a_project_with_more_invalid_values_than_are_searched_fails(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only the first problems of a resource are kept: their number alone does not end the search."""
    monkeypatch.setattr("reconciler.project.manifests.load.MAX_INVALID_VALUES", 500)
    values = ", ".join(map(str, range(200)))
    wrong = f"---\nkind: TLSEdge\nname: a%d\nspec: {{hostports: [{values}]}}\n"
    shell.write("manifests/one.yaml", "".join(wrong % number for number in range(10)))
    log = shell("validate", "--log-format", "json").err
    assert "more than 10,000 problems in this project; correct these first" in log
    assert ("TLSEdge/a2" in log, "TLSEdge/a3" in log) == (True, False)


def test_a_missing_file_of_a_field_that_is_not_secret_is_an_error(shell: Shell) -> None:
    shell.write("manifests/one.yaml", "kind: IPPolicy\nname: a\nspec: {description: {from_file: texts/a.txt}}\n")
    result = shell("validate")
    assert (result.code, result.err.splitlines()[0]) == (
        1,
        "manifests/one.yaml:3:21: IPPolicy/a.description: there is no file texts/a.txt; "
        "paths are relative to the project's root",
    )
    shell.write("texts/a.txt", "office")
    assert shell("validate").code == 0
    secret = "kind: Secret\nname: a\nspec: {vault_id: vault_1, name: a, value: {from_file: secrets/a}}\n"
    shell.write("manifests/one.yaml", secret)
    assert "there is no file" not in shell("validate").err


# --- environments -----------------------------------------------------------------------------------------------------

WRONG = "TLSEdge/payments: {spec: {hostports: 3}}\n"


def test_every_environment_is_validated_and_a_shared_problem_is_reported_once(shell: Shell) -> None:
    shell.write("environments/prod.yaml", "IPPolicy/office: {spec: {descripton: a}}\n")
    shell.write("environments/staging.yaml", "{}\n")
    shell.write("manifests/more.yaml", "kind: BotUser\nname: b\nspec: {name: b, nmae: b}\n")
    result = shell("validate")
    assert result.code == 1
    *lines, tally = result.err.splitlines()
    assert tally == "2 errors"
    assert lines[0].startswith("environments/prod.yaml:1:26: IPPolicy/office.descripton: in environment prod: unknown ")
    assert lines[1].startswith("manifests/more.yaml:3:17: BotUser/b.nmae: unknown field")
    assert shell("validate", "--env", "staging").err.splitlines()[-1] == "1 error"


def test_a_problem_is_reported_with_the_environments_that_have_it(shell: Shell) -> None:
    for name in ("a", "b", "c"):
        shell.write(f"environments/{name}.yaml", "{}\n" if name == "c" else "variables: {host: a.example.com}\n")
    shell.write("reconciler.yaml", "stack: s\nvariables: {host: _}\n")
    shell.write("manifests/more.yaml", "kind: ReservedDomain\nname: g\nspec: {domain: '${{ var.host }}'}\n")
    (line, _) = shell("validate").err.splitlines()
    assert "in the project without an environment and environment c: " in line


def test_every_error_of_every_environment_is_reported(shell: Shell) -> None:
    shell.write("environments/prod.yaml", WRONG)
    shell.write("environments/broken.yaml", "stack: [\n")
    result = shell("validate").err
    assert "environments/prod.yaml:1:38: TLSEdge/payments.hostports: in environment prod: expected a list" in result
    assert "in environment broken: " in result


def test_valid_environments_are_counted_on_a_line_each(shell: Shell) -> None:
    shell.write("environments/prod.yaml", "TLSEdge/payments: null\n")
    assert shell("validate").out == (
        "Valid: 3 resources in 1 file.\nValid (environment prod): 2 resources in 1 file.\n"
    )
    assert shell("validate", "--env", "prod").out == "Valid: 2 resources in 1 file.\n"


def test_a_project_with_variables_that_only_environments_set_is_validated_in_them(shell: Shell) -> None:
    shell.write("reconciler.yaml", "stack: s\nvariables: {who: {type: string}}\n")
    assert "variables.who: has no value" in shell("validate").err
    shell.write("environments/prod.yaml", "variables: {who: me}\n")
    assert shell("validate").out == "Valid (environment prod): 3 resources in 1 file.\n"


def test_neither_secrets_nor_other_environment_variables_are_needed(shell: Shell) -> None:
    shell.write(
        "reconciler.yaml",
        "stack: s\nplatform: {api_key: {from_env: KEY}}\nstore: {from_env: DB}\n"
        "variables: {where: {from_env: WHERE}, offices: {from_env: OFFICES}}\n",
    )
    shell.write(
        "manifests/more.yaml",
        "kind: Vault\nname: v\nspec: {name: v}\n---\n"
        "kind: Secret\nname: a\nspec: {vault_id: {ref: Vault/v}, name: a, value: {from_env: A}}\n---\n"
        "kind: Secret\nname: b\nspec: {vault_id: {ref: Vault/v}, name: b, value: {from_file: secrets/b}}\n---\n"
        "kind: BotUser\nname: b\nspec: {name: '${{ var.where }}'}\n---\n"
        "kind: BotUser\nname: '${{ each.key }}'\nfor_each: ${{ var.offices }}\nspec: {name: x}\n",
    )
    result = shell("validate")
    assert (result.code, result.out) == (0, "Valid: 7 resources in 2 files.\n"), result.err
    assert "store: the environment variable DB is not set" in shell("graph").err


# --- secrets ----------------------------------------------------------------------------------------------------------

VAULT = "kind: Vault\nname: v\nspec: {name: v}\n---\n"
SECRET = VAULT + "kind: Secret\nname: a\nspec: {vault_id: {ref: Vault/v}, name: a, value: %s}\n"


@pytest.mark.parametrize("value", ["hunter2", "'${{ var.literal }}'"])
def test_a_literal_secret_is_a_warning_and_strict_refuses_it(shell: Shell, value: str) -> None:
    shell.write("reconciler.yaml", "stack: s\nvariables: {literal: hunter3}\n")
    shell.write("manifests/secret.yaml", SECRET % value)
    result = shell("validate")
    assert result.code == 0
    assert result.err.startswith("manifests/secret.yaml:7:")
    assert "from_env: NAME" in result.err
    assert "hunter" not in result.err
    strict = shell("validate", "--strict")
    assert strict.code == 1
    assert "literal-secret" in strict.err


@pytest.mark.parametrize("value", ["{from_env: A}", "'${{ var.read }}'", "'${{ var.given }}'"])
def test_a_secret_from_a_variable_is_no_literal(shell: Shell, value: str) -> None:
    shell.write("reconciler.yaml", "stack: s\nvariables: {read: {from_env: A}, given: hunter2}\n")
    shell.write("manifests/secret.yaml", SECRET % value)
    result = shell("validate", "--strict", "--var", "given=hunter3")
    assert (result.code, result.err) == (0, "")


@pytest.mark.parametrize(
    ("settings", "code"),
    [
        ("platform: {base_url: 'https://api.example.com', api_key: k}", 1),
        ("platform: {base_url: 'http://127.0.0.1:8080', api_key: k}", 0),
        ("platform: {base_url: 'http://localhost:8080', api_key: k}", 0),
        ("platform: {base_url: 'http://[::1]:8080', api_key: k}", 0),
        ("store: postgresql://me:hunter2@db/x", 1),
        ("store: postgresql://me@db/x", 0),
    ],
)
def test_a_literal_key_is_allowed_for_a_platform_on_this_machine_only(shell: Shell, settings: str, code: int) -> None:
    shell.write("reconciler.yaml", f"stack: s\n{settings}\n")
    result = shell("validate", "--strict")
    assert result.code == code, result.err
    assert "hunter2" not in result.err


PLACES = {
    "manifest": {"manifests/x.yaml": "kind: BotUser\nname: x\nspec: {name: {from_env: RECONCILER_API_KEY}}\n"},
    "secret": {"manifests/x.yaml": SECRET % "{from_env: RECONCILER_PLAN_KEY}"},
    "patch": {"environments/e.yaml": "IPPolicy/office: {spec: {description: {from_env: RECONCILER_API_KEY}}}\n"},
    "defaults": {
        "reconciler.yaml": "stack: s\ndefaults: {IPPolicy: {spec: {metadata: {from_env: RECONCILER_API_KEY}}}}\n"
    },
    "variables": {"reconciler.yaml": "stack: s\nvariables: {v: {from_env: RECONCILER_API_KEY}}\n"},
    "environment": {
        "reconciler.yaml": "stack: s\nvariables: {v: a}\n",
        "environments/e.yaml": "variables: {v: {from_env: RECONCILER_SNAPSHOT_KEY}}\n",
    },
    "setting": {"reconciler.yaml": "stack: s\nstore: {from_env: RECONCILER_STORE}\n"},
}


@pytest.mark.parametrize("place", PLACES)
def test_environment_variables_of_reconciler_are_refused_outside_platform(
    shell: Shell, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    for name in ("RECONCILER_API_KEY", "RECONCILER_PLAN_KEY", "RECONCILER_SNAPSHOT_KEY"):
        monkeypatch.setenv(name, "k-1234567890")
    for file, text in PLACES[place].items():
        shell.write(file, text)
    result = shell("validate")
    assert result.code == 1
    assert "is an environment variable of reconciler itself; use another variable" in result.err


def test_platform_settings_may_name_environment_variables_of_reconciler(shell: Shell) -> None:
    shell.write("reconciler.yaml", "stack: s\nplatform: {api_key: {from_env: RECONCILER_API_KEY}}\n")
    shell.write("environments/e.yaml", "platform: {api_key: {from_env: RECONCILER_READ_KEY}}\n")
    assert shell("validate").code == 0


BOT = "kind: BotUser\nname: x\nspec: {name: %s}\n"
SHOWN = {
    "key of the platform": "{from_env: ALIAS}",
    "secret of another resource": "{from_env: A}",
    "its value by another name": "{from_env: COPY}",
    "variable": "'${{ var.a }}'",
    "variable inside text": "'the ${{ var.a }} here'",
    "file": "{from_file: files/b}",
    "file, spelt otherwise": "{from_file: ./files/b}",
    "file with a secret in it": "{from_file: note.txt}",
    "given": "'${{ var.given }}'",
}


@pytest.mark.parametrize("how", SHOWN)
def test_a_known_secret_is_refused_in_a_visible_field(shell: Shell, monkeypatch: pytest.MonkeyPatch, how: str) -> None:
    monkeypatch.setenv("RECONCILER_API_KEY", "the-key-itself")
    monkeypatch.setenv("ALIAS", "the-key-itself")
    monkeypatch.setenv("A", "short")
    monkeypatch.setenv("LONG", "correct-horse-battery-staple")
    monkeypatch.setenv("COPY", "correct-horse-battery-staple")
    shell.write("files/b", "b\n")
    shell.write("note.txt", "it is correct-horse-battery-staple, mind you\n")
    shell.write("reconciler.yaml", "stack: s\nvariables: {a: {from_env: A}, given: x}\n")
    secrets = ("{from_env: A}", "{from_env: LONG}", "{from_file: files/b}")
    declared = [
        f"kind: Secret\nname: s{at}\nspec: {{vault_id: {{ref: Vault/v}}, name: s{at}, value: {value}}}\n"
        for at, value in enumerate(secrets)
    ]
    shell.write("manifests/secret.yaml", VAULT + "---\n".join(declared))
    shell.write("manifests/bot.yaml", BOT % SHOWN[how])
    result = shell("validate", "--var", "given=the-key-itself")
    assert result.code == 1
    assert "manifests/bot.yaml:3:" in result.err
    assert "is used as a secret, but plans and the platform show this field" in result.err
    for secret in ("the-key-itself", "correct-horse"):
        assert secret not in result.err


def test_ordinary_values_of_environment_variables_are_no_secrets(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("A", "eu")
    monkeypatch.setenv("REGION", "eu")
    shell.write("manifests/secret.yaml", SECRET % "{from_env: A}")
    shell.write("manifests/bot.yaml", BOT % "{from_env: REGION}")
    result = shell("validate", "--strict")
    assert result.code == 0
    assert "from_env is for secrets" in result.err


@pytest.mark.parametrize(
    ("name", "is_like_a_secret"),
    [
        ("REPOSITORY_TOKEN", True),
        ("STRIPE_KEY", True),
        ("APIKEY", True),
        ("DB_PASSWORD", True),
        ("db_passwd", True),
        ("AWS_CREDENTIALS", True),
        ("CLIENT_SECRET", True),
        ("SSH_PUBLIC_KEY", False),
        ("AWS_ACCESS_KEY_ID", False),
        ("MONKEY", False),
        ("KEYBOARD", False),
        ("REGION", False),
    ],
)
@pytest.mark.parametrize("written", ["{from_env: %s}", "'${{ var.v }}'"])
def test_a_variable_named_like_a_secret_is_a_warning_in_a_visible_field(
    shell: Shell, name: str, is_like_a_secret: bool, written: str
) -> None:
    shell.write("reconciler.yaml", f"stack: s\nvariables: {{v: {{from_env: {name}}}}}\n")
    shell.write("manifests/bot.yaml", BOT % (written % name if "%" in written else written))
    result = shell("validate", "--strict")
    assert result.code == int(is_like_a_secret)
    assert (f"{name} is named like a secret" in result.err) == is_like_a_secret


# --- ids --------------------------------------------------------------------------------------------------------------


def test_text_with_a_slash_in_another_field_is_no_address(shell: Shell) -> None:
    shell.write("manifests/bot.yaml", BOT % "IPPolicy/office")
    assert shell("validate").code == 0


# --- problems of several environments ---------------------------------------------------------------------------------


def test_a_problem_of_all_instances_in_all_environments_is_reported_once(shell: Shell) -> None:
    shell.write("environments/prod.yaml", "variables: {}\n")
    shell.write("environments/staging.yaml", "variables: {}\n")
    shell.write(
        "manifests/x.yaml",
        "kind: IPPolicy\nname: p-${{ each.key }}\nfor_each: {a: 1, b: 2, c: 3, d: 4}\nspec:\n  descripton: x\n",
    )
    result = shell("validate")
    assert (result.code, result.err) == (
        1,
        "manifests/x.yaml:5:3: IPPolicy/p-a.descripton: unknown field (4 resources: p-a, p-b, p-c, …); "
        "did you mean description?\n1 error\n",
    )


def test_valid_manifests_are_counted(shell: Shell) -> None:
    assert shell("validate") == Output(0, "Valid: 3 resources in 1 file.\n", "")


def test_problems_are_printed_to_standard_error_a_line_each_and_counted(shell: Shell) -> None:
    shell.write("manifests/bad.yaml", "kind: TLSEdge\nname: x\nspec:\n  hostport: []\n  tls_termination: 3\n")
    result = shell("validate")
    assert result.code == 1
    assert result.out == ""
    *lines, summary = result.err.splitlines()
    assert [line.partition(": ")[0] for line in lines] == ["manifests/bad.yaml:4:3", "manifests/bad.yaml:5:20"]
    assert summary == "2 errors"


def test_a_missing_project_file_is_one_problem(shell: Shell) -> None:
    (shell.root / "reconciler.yaml").unlink()
    result = shell("validate")
    assert (result.code, result.out) == (1, "")
    assert result.err.startswith("there is no file reconciler.yaml; ")
    assert result.err.endswith("\n1 error\n")


TESTS = """\
- {from: 198.51.100.7, to: "https://e.example.com", expect: allow}
- {from: 198.51.100.7, to: "https://e.example.com/admin", expect: deny, severity: warning}
- {from: 198.51.100.7, to: "https://other.example.com", expect: deny}
"""
SERVED = """\
kind: CloudEndpoint
name: e
spec:
  url: https://e.example.com
  traffic_policy: {on_http_request: [{actions: [{type: custom-response, config: {status_code: 200}}]}]}
"""


def test_the_results_of_access_tests_are_written_as_junit_for_each_environment(shell: Shell) -> None:
    shell.write("manifests/one.yaml", SERVED)
    shell.write("tests/access.yaml", TESTS)
    for name in ("prod", "staging"):
        shell.write(f"environments/{name}.yaml", f"stack: {name}\n")
    result = shell("validate", "--format", "junit=access.xml", "--format", "text")
    assert (result.code, "files, 3 access tests.\n" in result.out) == (0, True)
    root = xml.fromstring((shell.root / "access.xml").read_text())  # noqa: S314 - our own text
    assert [(suite.get("name"), suite.get("tests"), suite.get("failures")) for suite in root] == [
        ("access tests", "3", "1"),
        ("access tests of prod", "3", "1"),
        ("access tests of staging", "3", "1"),
    ]
    passed, failed, (skipped,) = root[0]
    assert (passed.get("file"), passed.get("line"), [*passed]) == ("tests/access.yaml", "1", [])
    (failure,) = failed
    assert (failure.get("type"), failed.get("line")) == ("warning", "2")
    assert failure.text == "tests/access.yaml:2:3: expected deny, found allow: everyone (CloudEndpoint/e)"
    assert skipped.get("message") == "no declared resource serves https://other.example.com"


def test_the_results_of_an_invalid_project_are_an_empty_report(shell: Shell) -> None:
    shell.write("manifests/one.yaml", "kind: TLSEdge\nname: a\nspec: {hostprots: []}\n")
    result = shell("validate", "--format", "junit")
    assert (result.code, '<testsuite name="access tests" tests="0"' in result.out) == (1, True)


@pytest.mark.parametrize(
    ("form", "message"),
    [
        ("text=summary.txt", "text has no file"),
        ("json", "unknown format 'json'"),
        ("junit=reconciler.yaml", "reconciler.yaml"),
    ],
)
def test_validate_refuses_other_formats_and_files_of_the_project(shell: Shell, form: str, message: str) -> None:
    result = shell("validate", "--format", form)
    assert (result.code != 0, message in result.err, (shell.root / "reconciler.yaml").read_text()) == (
        *(True, True),
        "version: 1\nstack: prod\n",
    )
