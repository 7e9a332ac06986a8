"""Secrets inside traffic policies and headers: sent unchanged, never shown, and compared exactly."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.harness.platform import Sandbox
from tests.harness.project import Output, Project
from tests.security.canaries import Canaries, fresh

FORMATS = ("text", "markdown", "html", "json", "sarif", "github", "gitlab")
URL = "https://app.internal"


@pytest.fixture
def known() -> dict[str, str]:
    """One secret for each place that can hold one."""
    return {
        "credentials": f"admin:{fresh()}",
        "webhook": fresh(),
        "client": fresh(),
        "header": f"Bearer {fresh()}",
        "file": fresh(),
        "route": fresh(),
        "response": fresh(),
        "unknown": fresh(),
    }


def manifests(known: dict[str, str]) -> str:
    return f"""\
kind: CloudEndpoint
name: inline
spec:
  url: {URL}
  traffic_policy:
    on_http_request:
      - actions:
          - {{type: basic-auth, config: {{credentials: ["{known["credentials"]}", "ops:${{{{ var.password }}}}"]}}}}
          - {{type: verify-webhook, config: {{provider: github, secret: {{from_env: WEBHOOK}}}}}}
          - {{type: add-headers, config: {{headers: {{Authorization: "{known["header"]}", x-ver: 1.10}}}}}}
          - {{type: new-action, config: {{new_password: "{known["unknown"]}"}}}}
          - {{type: custom-response, config: {{status_code: 200, body: shown}}}}
---
kind: CloudEndpoint
name: text
spec: {{url: "https://text.internal", traffic_policy: {{from_file: files/policy.yaml}}}}
---
kind: HTTPSEdge
name: e
spec: {{}}
---
kind: HTTPSEdgeRoute
name: r
spec:
  edge_id: {{ref: HTTPSEdge/e}}
  match_type: path_prefix
  match: /
  request_headers: {{add: {{X-Api-Key: {{from_env: ROUTE}}, x-shown: seen}}}}
---
kind: HTTPResponseBackend
name: b
spec: {{body: x, headers: {{set-cookie: "{known["response"]}"}}, status_code: 200}}
"""


@pytest.fixture
def deployed(on_sandbox: Project, known: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> Project:
    on_sandbox.write("reconciler.yaml", "stack: prod\nvariables: {password: {from_env: PASSWORD}}\n")
    monkeypatch.setenv("PASSWORD", known["client"])
    monkeypatch.setenv("WEBHOOK", known["webhook"])
    monkeypatch.setenv("ROUTE", known["route"])
    on_sandbox.write("manifests/all.yaml", manifests(known))
    secret = f"{{provider: google, client_id: shown, client_secret: {known['file']}}}"
    on_sandbox.write(
        "files/policy.yaml",
        f"on_http_request: [{{actions: [{{type: oauth, config: {secret}}}, {{type: deny}}]}}]  # {known['file']}\n",
    )
    return on_sandbox


def outputs(project: Project, *words: str) -> Iterator[tuple[str, bytes]]:
    """The output of a command in every format."""
    forms = [f"{form}=out/{form}" for form in FORMATS if form != "text"]
    (project.root / "out").mkdir(exist_ok=True)
    result = project(*words, "--format", "text", *(word for form in forms for word in ("--format", form)))
    yield from (("text", result.out.encode()), ("stderr", result.err.encode()))
    yield from ((form, (project.root / "out" / form).read_bytes()) for form in FORMATS if form != "text")


def check_silent(canaries: Canaries, result: Output) -> Output:
    assert canaries.within([("stdout", result.out.encode()), ("stderr", result.err.encode())]) == []
    return result


def test_secrets_in_policies_are_sent_and_shown_nowhere(
    deployed: Project, sandbox: Sandbox, known: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    canaries = Canaries(known)
    valid = check_silent(canaries, deployed("validate"))
    assert (valid.code, valid.err.count("in plain text")) == (0, 5), valid
    assert canaries.within(outputs(deployed, "plan", "--out", "plan.json")) == []
    assert canaries.find("plan file", (deployed.root / "plan.json").read_bytes()) == []
    assert check_silent(canaries, deployed("show", "plan.json")).code == 0
    applied = check_silent(canaries, deployed("apply", "plan.json", "-y"))
    assert applied.code == 0, applied

    policies = {endpoint["url"]: endpoint["traffic_policy"] for endpoint in sandbox.get("/endpoints")["endpoints"]}
    assert (
        policies["https://text.internal"] == (deployed.root / "files/policy.yaml").read_text(encoding="utf-8").strip()
    )
    actions = json.loads(policies[URL])["on_http_request"][0]["actions"]
    assert actions[0]["config"]["credentials"] == [known["credentials"], f"ops:{known['client']}"]
    assert actions[1]["config"]["secret"] == known["webhook"]
    assert actions[2]["config"]["headers"]["Authorization"] == known["header"]
    assert '"x-ver": 1.10}' in policies[URL]
    assert actions[3]["config"]["new_password"] == known["unknown"]
    (route,) = sandbox.get("/edges/https")["https_edges"][0]["routes"]
    assert route["request_headers"]["add"] == {"x-api-key": known["route"], "x-shown": "seen"}

    assert deployed("plan", "--detailed-exitcode").code == 0
    assert deployed("drift").code == 0
    for subject in ("CloudEndpoint/inline", "CloudEndpoint/text", "HTTPSEdgeRoute/r", "HTTPResponseBackend/b"):
        assert check_silent(canaries, deployed("explain", subject)).code == 0
        assert check_silent(canaries, deployed("explain", subject, "--live")).code == 0
    assert (
        check_silent(canaries, deployed("explain", "CloudEndpoint/inline.traffic_policy.on_http_request[0]")).code == 0
    )
    assert check_silent(canaries, deployed("graph")).code == 0
    assert check_silent(canaries, deployed("list", "--format", "json")).code == 0
    assert check_silent(canaries, deployed("history")).code == 0
    assert canaries.find("store", b"".join(path.read_bytes() for path in (deployed.root / "state").iterdir())) == []
    assert check_silent(canaries, deployed("snapshot", "--out", "snapshot.json")).code == 0
    assert canaries.find("snapshot", (deployed.root / "snapshot.json").read_bytes()) == []
    assert check_silent(canaries, deployed("plan", "--snapshot", "snapshot.json", "--detailed-exitcode")).code == 0

    monkeypatch.setenv("WEBHOOK", changed := fresh())
    canaries = Canaries({**known, "changed": changed})
    texts = dict(outputs(deployed, "plan"))
    assert canaries.within(texts.items()) == []
    assert b"(sensitive value changed)" in texts["text"]
    assert b"config.secret" in texts["text"]
    assert texts["text"].count(b"(sensitive") == 1
    offline = check_silent(canaries, deployed("plan", "--snapshot", "snapshot.json"))
    assert "(sensitive value changed)" in offline.out
    assert check_silent(canaries, deployed("apply", "-y")).code == 0
    assert deployed("plan", "--detailed-exitcode").code == 0


def test_a_fork_plans_from_a_snapshot_without_the_secrets_of_policies(
    deployed: Project, known: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    text = manifests(known).replace('"ops:${{ var.password }}"', "{from_env: PASSWORD}")
    deployed.write("manifests/all.yaml", text)
    deployed.write("reconciler.yaml", "stack: prod\n")
    monkeypatch.setenv("PASSWORD", f"ops:{known['client']}")
    assert deployed("apply", "-y").code == 0
    assert deployed("snapshot", "--out", "snapshot.json").code == 0
    for name in ("PASSWORD", "WEBHOOK", "ROUTE"):
        monkeypatch.delenv(name)
    result = check_silent(Canaries(known), deployed("plan", "--snapshot", "snapshot.json", "--detailed-exitcode"))
    assert result.code == 0, result
    deployed.write(
        "manifests/all.yaml", text.replace("body: shown", "body: other").replace("x-ver: 1.10", "x-ver: 1.1")
    )
    result = check_silent(Canaries(known), deployed("plan", "--snapshot", "snapshot.json", "--detailed-exitcode"))
    assert result.code == 2
    assert "sensitive" not in result.out
    assert "1.10" in result.out


def test_a_plan_file_is_refused_if_a_secret_changed_since(deployed: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    assert deployed("plan", "--out", "plan.json").code == 0
    monkeypatch.setenv("WEBHOOK", fresh())
    result = deployed("apply", "plan.json", "-y")
    assert result.code != 0
    assert "changed after the plan was created" in result.err


def test_drift_in_a_secret_of_a_policy_is_found_and_not_accepted(
    deployed: Project, sandbox: Sandbox, known: dict[str, str]
) -> None:
    assert deployed("apply", "-y").code == 0
    (live,) = (endpoint for endpoint in sandbox.get("/endpoints")["endpoints"] if endpoint["url"] == URL)
    changed = fresh()
    policy = live["traffic_policy"].replace(known["webhook"], changed)
    sandbox.patch(f"/endpoints/{live['id']}", {"traffic_policy": policy})
    canaries = Canaries({**known, "changed": changed})
    found = check_silent(canaries, deployed("drift"))
    assert found.code == 2
    assert "(sensitive value changed)" in found.out
    before = (deployed.root / "manifests/all.yaml").read_text(encoding="utf-8")
    assert "contains a secret" in check_silent(canaries, deployed("accept")).err
    assert (deployed.root / "manifests/all.yaml").read_text(encoding="utf-8") == before


def test_import_writes_variables_instead_of_secrets(
    deployed: Project, sandbox: Sandbox, known: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert deployed("apply", "-y").code == 0
    for path in ("manifests/all.yaml", "files/policy.yaml"):
        (deployed.root / path).unlink()
    deployed.write("reconciler.yaml", "stack: other\n")
    canaries = Canaries(known)
    result = check_silent(canaries, deployed("import", "--all"))
    assert result.code == 0, result
    written = {
        path.name: path.read_bytes() for path in deployed.root.joinpath("manifests").rglob("*") if path.is_file()
    }
    assert canaries.within(written.items()) == []
    text = b"".join(written.values()).decode()
    assert "secret: {from_env: CLOUD_ENDPOINT_" in text
    assert "x-ver: 1.10" in text
    names = [line.partition("{from_env: ")[2].partition("}")[0] for line in text.splitlines() if "from_env" in line]
    assert len(names) == len(set(names)) == 8
    unset = deployed("plan")
    assert unset.code == 1
    assert "is not set" in " ".join(unset.out.split())


def live_policy(sandbox: Sandbox) -> str:
    (found,) = sandbox.get("/endpoints")["endpoints"]
    return str(found["traffic_policy"])


def test_the_spelling_of_a_number_is_preserved_in_apply_drift_and_import(on_sandbox: Project, sandbox: Sandbox) -> None:
    actions = "[{type: add-headers, config: {headers: {x-ver: 1.10, x-e: 1e3}}}, {type: deny}]"
    policy = f"{{on_http_request: [{{actions: {actions}}}]}}"
    on_sandbox.write(
        "manifests/a.yaml", f"kind: CloudEndpoint\nname: a\nspec: {{url: '{URL}', traffic_policy: {policy}}}\n"
    )
    assert on_sandbox("apply", "-y").code == 0
    assert '{"x-ver": 1.10, "x-e": 1e3}' in live_policy(sandbox)
    assert on_sandbox("drift").code == 0
    (live,) = sandbox.get("/endpoints")["endpoints"]
    sandbox.patch(f"/endpoints/{live['id']}", {"traffic_policy": live_policy(sandbox).replace("1.10", "1.1")})
    drifted = on_sandbox("drift")
    assert drifted.code == 2
    assert [line.strip() for line in drifted.out.splitlines() if "1.1" in line] == ["- 1.1", "+ 1.10"]
    plan = json.loads(on_sandbox("plan", "--format", "json").out)
    (change,) = plan["changes"]
    assert [(field["old"], field["new"]) for field in change["fields"]] == [(1.1, {"$number": "1.10"})]
    assert on_sandbox("apply", "-y").code == 0
    assert '"x-ver": 1.10' in live_policy(sandbox)


@pytest.mark.parametrize("how", ["accept", "import"])
def test_the_spelling_of_a_number_on_the_platform_is_preserved(on_sandbox: Project, sandbox: Sandbox, how: str) -> None:
    policy = (
        '{"on_http_request": [{"actions": [{"type": "log", "config": {"metadata": {"v": %s}}}, {"type": "deny"}]}]}'
    )
    on_sandbox.write(
        "manifests/a.yaml", f"kind: CloudEndpoint\nname: a\nspec: {{url: '{URL}', traffic_policy: {policy % 2}}}\n"
    )
    if how == "import":
        (on_sandbox.root / "manifests/a.yaml").unlink()
        sandbox.post(
            "/endpoints", {"url": URL, "type": "cloud", "bindings": ["internal"], "traffic_policy": policy % "1.10"}
        )
        assert on_sandbox("import").code == 0
    else:
        assert on_sandbox("apply", "-y").code == 0
        (live,) = sandbox.get("/endpoints")["endpoints"]
        sandbox.patch(f"/endpoints/{live['id']}", {"traffic_policy": policy % "1.10"})
        assert on_sandbox("accept").code == 0
    text = b"".join(path.read_bytes() for path in on_sandbox.root.joinpath("manifests").rglob("*.yaml")).decode()
    assert "1.10" in text
    assert on_sandbox("plan").code == 0


def test_a_variable_with_credentials_is_read_where_the_setting_is_not_named_like_a_secret(
    on_sandbox: Project, sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`validate` and `import` write it so; the platform got the map itself."""
    canaries = Canaries({"url": (secret := fresh())})
    config = "{url: {from_env: TARGET}, method: GET, headers: {x-of-mine: {from_env: LABEL}}}"
    on_sandbox.write(
        "manifests/all.yaml",
        f"kind: CloudEndpoint\nname: e\nspec:\n  url: {URL}\n  traffic_policy:\n"
        f"    on_http_request: [{{actions: [{{type: http-request, config: {config}}}]}}]\n",
    )
    unset = on_sandbox("plan")
    assert (unset.code, "config.url: the environment variable TARGET is not set" in unset.err) == (1, True)
    monkeypatch.setenv("TARGET", f"https://user:{secret}@x.example")
    monkeypatch.setenv("LABEL", "no credentials")
    assert canaries.within(outputs(on_sandbox, "plan", "--out", "plan.json")) == []
    assert check_silent(canaries, on_sandbox("apply", "-y")).code == 0
    (live,) = sandbox.get("/endpoints")["endpoints"]
    sent = json.loads(live["traffic_policy"])["on_http_request"][0]["actions"][0]["config"]
    assert sent["url"] == f"https://user:{secret}@x.example"
    assert sent["headers"] == {"x-of-mine": {"from_env": "LABEL"}}  # with a warning: it would be shown
    assert on_sandbox("plan", "--detailed-exitcode").code == 0
    check_silent(canaries, on_sandbox("list", "--format", "json"))

    (on_sandbox.root / "manifests/all.yaml").unlink()
    imported = check_silent(canaries, on_sandbox("import", "--kind", "CloudEndpoint"))
    assert "not imported" not in imported.err
