"""`comment` creates and updates one comment of its own at emulated code hosts."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
from msgspec.structs import replace

from reconciler.cli.commands import comment
from reconciler.cli.terminal import formats
from reconciler.model.address import Address
from reconciler.model.change import Action, Change, FieldChange, Reason
from reconciler.model.plan import Plan
from reconciler.operations import run_context
from reconciler.rendering.plan import markdown
from reconciler.rendering.plan.markdown import NO_PLAN, marker
from reconciler.rendering.plan.phrases import Flavour
from reconciler.rendering.wire import plan_json
from tests.cli.code_hosts import ALICE, BOT, TOKEN, US, CodeHost
from tests.harness.project import Output, Shell
from tests.rendering.plans import WHOLE

OURS = marker(WHOLE.stack, WHOLE.account)
STAGING = marker("staging", WHOLE.account)
OTHERS = (marker("dev", WHOLE.account), marker(WHOLE.stack, "https://api.example.com (acme)"))
NOT_PLANNED = "| `{}` | ❔ **not planned**; see the log | unknown | unknown | unknown | unknown |\n"
NOTES = "/projects/42/merge_requests/7/notes"


@pytest.fixture
def host() -> Iterator[CodeHost]:
    with CodeHost() as running:
        yield running


@pytest.fixture
def reviewed(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> Shell:
    """A project with a plan file, outside a pipeline."""
    for name in (
        "GITHUB_TOKEN",
        "GITHUB_REPOSITORY",
        "GITHUB_API_URL",
        "GITHUB_EVENT_PATH",
        "GITHUB_REF",
        "GITLAB_TOKEN",
        "CI_API_V4_URL",
        "CI_PROJECT_ID",
        "CI_MERGE_REQUEST_IID",
        "RECONCILER_PLAN_KEY",
    ):
        monkeypatch.delenv(name, raising=False)  # fmt: skip
    shell.write("plan.json", plan_json.write_plan(WHOLE))
    return shell


@pytest.fixture
def github(reviewed: Shell, host: CodeHost, monkeypatch: pytest.MonkeyPatch) -> Shell:
    monkeypatch.setenv("GITHUB_API_URL", host.url)
    monkeypatch.setenv("GITHUB_REPOSITORY", "octo/infra")
    monkeypatch.setenv("GITHUB_REF", "refs/pull/12/merge")
    monkeypatch.setenv("GITHUB_TOKEN", TOKEN)
    return reviewed


@pytest.fixture
def gitlab(reviewed: Shell, host: CodeHost, monkeypatch: pytest.MonkeyPatch) -> Shell:
    monkeypatch.setenv("CI_API_V4_URL", f"{host.url}/api/v4")
    monkeypatch.setenv("CI_PROJECT_ID", "42")
    monkeypatch.setenv("CI_MERGE_REQUEST_IID", "7")
    monkeypatch.setenv("GITLAB_TOKEN", TOKEN)
    return reviewed


def test_a_dry_run_prints_the_comment_that_a_first_run_posts_and_needs_no_code_host(
    reviewed: Shell, host: CodeHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    printed = reviewed("comment", "--dry-run", "plan.json")
    assert (printed.code, printed.err) == (0, "")
    monkeypatch.setenv("GITHUB_API_URL", host.url)
    monkeypatch.setenv("GITHUB_REPOSITORY", "octo/infra")
    monkeypatch.setenv("GITHUB_REF", "refs/pull/12/merge")
    monkeypatch.setenv("GITHUB_TOKEN", TOKEN)
    again = reviewed("comment", "--dry-run", "plan.json", "--failed", "staging")
    assert "| `staging` |" in again.out
    assert host.comments == []
    assert reviewed("comment", "plan.json").code == 0
    assert host.comments[0]["body"] == printed.out


def test_the_first_run_comments_and_the_next_with_another_plan_updates_it(github: Shell, host: CodeHost) -> None:
    assert github("comment", "plan.json") == Output(0, "", "Comment created.\n")
    host.comments[0]["body"] = f"{OURS}\nan older plan"
    assert github("comment", "plan.json") == Output(0, "", "Comment updated.\n")
    (body,) = host.bodies
    assert body.startswith(f"{OURS}\n<!-- reconciler digest=blake2b:")
    assert host.changes == [
        ("POST", "/repos/octo/infra/issues/12/comments"),
        ("PATCH", "/repos/octo/infra/issues/comments/1"),
    ]


def test_the_same_plan_again_changes_nothing(github: Shell, host: CodeHost) -> None:
    github("comment", "plan.json")
    assert github("comment", "plan.json") == Output(0, "", "Comment unchanged.\n")
    assert len(host.changes) == 1


def test_several_plans_are_rows_of_a_table_in_the_order_of_options(github: Shell, host: CodeHost) -> None:
    github.write("staging.json", plan_json.write_plan(replace(WHOLE, stack="staging")))
    files = ("staging.json", "plan.json")
    assert github("comment", *files) == Output(0, "", "Comment created.\n")
    assert github("comment", *files) == Output(0, "", "Comment unchanged.\n")
    (body,) = host.bodies
    assert re.findall("^## .*$", body, re.MULTILINE) == ["## Plan for 2 environments"]
    assert re.findall("^[|] (`.*?`)", body, re.MULTILINE) == ["`staging`", f"`{WHOLE.stack}`"]
    assert body.count("<code>ReservedDomain/old</code> delete") == 1
    assert body.startswith(f"{STAGING}\n{OURS}\n<!-- reconciler digest=")
    assert body.count("<!-- reconciler stack=") == 2
    assert len(body) < 65_536


@pytest.mark.parametrize("run", ["", "https://ci.example.com/runs/7"])
def test_the_markers_and_the_address_of_the_run_are_part_of_the_limit(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, run: str
) -> None:
    monkeypatch.setattr(run_context, "read_run_context", lambda _: SimpleNamespace(run_address=run))
    monkeypatch.setattr(
        formats, "render_markdown", lambda _, missing, limit: f"{[*missing]} within {markdown.LIMIT - limit} less"
    )
    one = formats.PlanOutput(Plan("prod"), "", tmp_path, Flavour.PLAN)
    whats = ("See the log", "The page with the dependency graph is an artifact", "The pages are artifacts")
    for number, what in enumerate(whats):
        outputs = [one] * number
        foot = f"\n{what} of [this run]({run}).\n" if run else ""
        for planned, unplanned, failed, head, missing in (
            (("a",), ("b",), (), "a\nb\n", [markdown.name_stack("b")]),
            ((), (), ("lab",), f"{markdown.NO_PLAN}\n", ["lab"]),
        ):
            text = comment._render(outputs, planned, unplanned, failed)
            assert text == f"{head}{missing} within {len(head) + len(foot)} less{foot}"


def test_small_plans_leave_the_length_of_the_comment_to_a_large_one(github: Shell, host: CodeHost) -> None:
    policy = "\n".join(f"line {number}: {'x' * 80}" for number in range(30))
    fields = (FieldChange("traffic_policy.value", None, policy),)
    changes = tuple(
        Change(Address("TLSEdge", f"shop-{number}"), Action.UPDATE, Reason.FIELDS, fields=fields)
        for number in range(18)
    )
    github.write("large.json", plan_json.write_plan(Plan("large", changes=changes)))
    names = [f"small-{number}" for number in range(3)]
    for name in names:
        github.write(f"{name}.json", plan_json.write_plan(Plan(name)))
    assert github("comment", *(f"{name}.json" for name in (*names, "large"))).code == 0
    (body,) = host.bodies
    assert 50_000 < len(body) < 65_536
    assert "Shortened" not in body
    assert all(f"| `{name}` | no changes |" in body for name in names)


@pytest.fixture(params=["github", "gitlab"])
def pipeline(request: pytest.FixtureRequest) -> Shell:
    """Each of the code hosts, with the plan files `plan.json` and `staging.json`."""
    shell: Shell = request.getfixturevalue(request.param)
    shell.write("staging.json", plan_json.write_plan(replace(WHOLE, stack="staging")))
    return shell


def test_a_stack_without_a_plan_is_listed_in_the_updated_comment(pipeline: Shell, host: CodeHost) -> None:
    both = ("staging.json", "plan.json")
    pipeline("comment", *both)
    (whole,) = host.bodies
    assert pipeline("comment", "plan.json").err == "Comment updated.\n"
    (body,) = host.bodies
    assert body.startswith(f"{OURS}\n{STAGING}\n")
    assert NOT_PLANNED.format("staging") in body
    assert re.findall("^## .*$", body, re.MULTILINE) == ["## Plan for 1 of 2 environments"]
    assert pipeline("comment", "plan.json").err == "Comment unchanged.\n"
    assert pipeline("comment", "staging.json").err == "Comment updated.\n"  # the other stack has no plan
    assert NOT_PLANNED.format(WHOLE.stack) in host.bodies[0]
    assert pipeline("comment", *both).err == "Comment updated.\n"
    assert host.bodies == [whole]


def test_the_oldest_of_several_comments_with_a_stack_is_updated(pipeline: Shell, host: CodeHost) -> None:
    host.say(ALICE, f"{STAGING}\n{OURS}\nof another user")
    host.say(US, f"{OTHERS[0]}\nof another stack")
    host.say(US, f"{STAGING}\nolder")
    host.say(US, f"{OURS}\nlater")
    before = host.bodies
    pipeline("comment", "plan.json", "staging.json")
    assert host.bodies[2].startswith(f"{OURS}\n{STAGING}\n<!-- reconciler digest=")
    assert "not planned" not in host.bodies[2]
    assert [*host.bodies[:2], host.bodies[3]] == [*before[:2], before[3]]


def test_text_in_an_edited_marker_is_not_copied_into_the_comment(github: Shell, host: CodeHost) -> None:
    hostile = "<!-- reconciler stack=%60%0A%3Cimg%3E%20%40alice account=0123456789abcdef -->"
    edited = "<!-- reconciler stack=a account=0123456789abcdef --> [link](https://example.com)"
    more = [marker(f"stack {number}", "") for number in range(100)]
    host.say(US, "\r\n".join([OURS, OURS, hostile, *more, edited, "text"]))
    assert github("comment", "plan.json").err == "Comment updated.\n"
    (body,) = host.bodies
    assert body.startswith(f"{OURS}\n{hostile}\n{more[0]}\n")
    assert body.count("**not planned**") == 48
    assert NOT_PLANNED.replace("`{}`", "`` `\\n<img> @alice ``") in body
    assert "link" not in body
    assert len(body) <= 60_000
    host.comments[0]["body"] = f"{edited}\n{OURS}"
    assert github("comment", "plan.json").err == "Comment created.\n"


def test_standard_input_is_read_for_one_plan_only(github: Shell) -> None:
    result = github("comment", "-", "-")
    assert (result.code, result.err) == (64, "error: standard input holds one plan; pass - once\n")


def test_gitlab_has_notes_on_a_merge_request(gitlab: Shell, host: CodeHost) -> None:
    gitlab("comment", "plan.json")
    host.comments[0]["body"] = f"{OURS}\nan older plan"
    assert gitlab("comment", "plan.json", "--quiet") == Output(0, "", "")
    assert len(host.comments) == 1
    assert host.changes == [("POST", f"/api/v4{NOTES}"), ("PUT", f"/api/v4{NOTES}/1")]


@pytest.mark.parametrize("size", [100, 20])
def test_a_comment_is_found_on_later_pages_without_following_links(github: Shell, host: CodeHost, size: int) -> None:
    host.largest_page = size
    for number in range(230):
        host.say(ALICE, f"comment {number}")
    host.say(US, f"{OURS}\nan older plan")
    assert github("comment", "plan.json").err == "Comment updated.\n"
    assert len(host.comments) == 231


def test_comments_of_other_users_and_stacks_are_not_updated(github: Shell, host: CodeHost) -> None:
    host.say(ALICE, f"{OURS}\nNo changes. Merge it!")
    host.say(US, f"quoting {OURS}")
    for other in OTHERS:
        host.say(US, f"{other}\nof another stack or account")
    assert github("comment", "plan.json").err == "Comment created.\n"
    assert [body.partition("\n")[0] for body in host.bodies] == [
        OURS, f"quoting {OURS}", *OTHERS, OURS,
    ]  # fmt: skip


def test_a_workflow_s_token_finds_its_own_comment_by_the_bot(github: Shell, host: CodeHost) -> None:
    host.me = None
    host.say(ALICE, f"{OURS}\nNo changes. Merge it!")
    host.say(BOT, f"{OURS}\nan older plan")
    assert github("comment", "plan.json").err == "Comment updated.\n"
    assert host.changes == [("PATCH", "/repos/octo/infra/issues/comments/2")]


def test_a_comment_that_was_deleted_before_its_update_is_created_again(github: Shell, host: CodeHost) -> None:
    host.say(US, f"{OURS}\nan older plan")
    host.vanishing = True
    assert github("comment", "plan.json").err == "Comment created.\n"
    assert [method for method, _ in host.changes] == ["PATCH", "POST"]


def test_the_plan_is_read_from_standard_input_and_the_number_from_the_event(
    github: Shell, host: CodeHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    github.write("event.json", json.dumps({"pull_request": {"number": 34}}))
    monkeypatch.setenv("GITHUB_EVENT_PATH", "event.json")
    monkeypatch.setattr("sys.stdin", io.StringIO(plan_json.write_plan(WHOLE)))
    assert github("comment", "-").code == 0
    assert host.changes == [("POST", "/repos/octo/infra/issues/34/comments")]


def test_a_redirect_is_not_followed_and_gets_no_token(github: Shell, host: CodeHost) -> None:
    with CodeHost() as thief:
        host.elsewhere = thief.url
        result = github("comment", "plan.json")
        assert thief.asked == []
    assert result.code == 1
    assert "the redirect was not followed, and the token was not sent to its target" in result.err


def test_a_wrong_token_exits_6_and_is_not_shown(github: Shell, host: CodeHost, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GITHUB_TOKEN", "wrong-and-still-a-secret")
    result = github("comment", "plan.json")
    assert result.code == 6
    assert "returned 401 for GET /user" in result.err
    assert result.err.endswith("; check the token and its permissions\n")
    assert "still-a-secret" not in result.err


@pytest.mark.parametrize("status", [429, 502])
def test_a_temporary_error_of_a_code_host_suggests_another_run(github: Shell, host: CodeHost, status: int) -> None:
    host.failing = status
    result = github("comment", "plan.json")
    assert (result.code, result.err) == (
        1,
        f"error: {host.url} returned {status} for GET /user: not now; run it again\n",
    )


LIMITED = "You have exceeded a secondary rate limit"


@pytest.mark.parametrize("where", ["GET /user", "POST /comments"])
@pytest.mark.parametrize(
    ("headers", "message"),
    [({"Retry-After": "60"}, "slow down"), ({"x-ratelimit-remaining": "0"}, "API limit"), ({}, LIMITED)],
)
def test_a_403_for_too_many_requests_is_a_temporary_error_not_a_wrong_token(
    github: Shell, host: CodeHost, where: str, headers: dict[str, str], message: str
) -> None:
    host.instead[where] = (403, headers, {"message": message})
    result = github("comment", "plan.json")
    assert result.code == 1
    assert result.err.endswith(f": {message}; run it again\n")
    assert host.comments == []


def test_a_403_for_another_reason_does_not_mean_a_workflow_s_token(github: Shell, host: CodeHost) -> None:
    """Otherwise the command would not find its own comment and create a second one."""
    host.say(US, f"{OURS}\nan older plan")
    host.instead["GET /user"] = (403, {}, {"message": "Resource protected by organization SAML enforcement"})
    assert github("comment", "plan.json").code == 6
    assert len(host.comments) == 1


@pytest.mark.parametrize(
    ("where", "response", "error"),
    [
        ("GET /comments", {"message": "odd"}, "the response of {url} is not a list"),
        ("GET /user", [1], "the response of {url} does not name the owner of the token"),
        ("GET /user", {"login": {}}, "the response of {url} does not name the owner of the token"),
    ],
)
def test_a_malformed_response_of_a_code_host_is_refused(
    github: Shell, host: CodeHost, where: str, response: object, error: str
) -> None:
    host.instead[where] = (200, {}, response)
    result = github("comment", "plan.json")
    assert (result.code, result.err) == (1, f"error: {error.format(url=host.url)}\n")
    assert host.changes == []


def test_a_body_that_is_nested_too_deep_is_refused(github: Shell, host: CodeHost) -> None:
    deep: list[object] = []
    for _ in range(500):
        deep = [deep]
    host.instead["GET /comments"] = (200, {}, deep)
    assert github("comment", "plan.json").err == f"error: the response of {host.url} is not JSON\n"


@pytest.mark.parametrize("author", ["deployer", None, ["deployer"]])
def test_a_comment_without_a_readable_author_is_not_updated(github: Shell, host: CodeHost, author: object) -> None:
    host.instead["GET /comments"] = (200, {"Link": ";;,<"}, [{"id": 1, "body": OURS, "user": author}])
    assert github("comment", "plan.json").err == "Comment created.\n"


def test_the_error_description_of_gitlab_is_printed(gitlab: Shell, host: CodeHost) -> None:
    error = {"error": "insufficient_scope", "error_description": f"more than {TOKEN} may\x1b[31m"}
    host.instead["GET /user"] = (403, {}, error)
    result = gitlab("comment", "plan.json")
    assert result.code == 6
    assert ": insufficient_scope: more than (secret) may; check the token" in result.err


@pytest.mark.parametrize("token", ["abc\ndef", "abc def", "“abc”"])
def test_a_token_with_invalid_characters_is_refused_and_not_printed(
    github: Shell, host: CodeHost, monkeypatch: pytest.MonkeyPatch, token: str
) -> None:
    monkeypatch.setenv("GITHUB_TOKEN", token)
    assert github("comment", "plan.json") == Output(
        64, "", "error: GITHUB_TOKEN contains whitespace or other invalid characters; set it to the token alone\n"
    )
    assert host.asked == []


def test_an_unreachable_code_host_is_reported_with_the_error_of_the_system(
    github: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GITHUB_API_URL", "http://127.0.0.1:1")
    result = github("comment", "plan.json")
    assert (result.code, result.err) == (
        1, "error: cannot reach http://127.0.0.1:1: connection refused; run it again\n",
    )  # fmt: skip


def test_plain_http_to_another_machine_is_refused(github: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GITHUB_API_URL", "http://github.example.com")
    result = github("comment", "plan.json")
    assert result.code == 64
    assert "plain http would send the key unencrypted" in result.err


@pytest.mark.parametrize(
    ("unset", "error"),
    [
        ("GITHUB_REPOSITORY", "error: cannot determine the pull or merge request; run in a pipeline, or set "),
        ("GITHUB_TOKEN", "error: GITHUB_TOKEN is not set; set it to a token that may write comments"),
        (
            "GITHUB_REF",
            "error: cannot determine the pull request from GITHUB_EVENT_PATH or GITHUB_REF; ",
        ),
    ],
)
def test_a_missing_environment_variable_is_named(
    github: Shell, host: CodeHost, monkeypatch: pytest.MonkeyPatch, unset: str, error: str
) -> None:
    monkeypatch.delenv(unset)
    result = github("comment", "plan.json")
    assert (result.code, result.out) == (64, "")
    assert result.err.startswith(error)
    assert host.asked == []


def test_a_file_that_is_no_plan_is_refused_before_any_request(
    github: Shell, host: CodeHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    github.write("plan.json", "{}")
    monkeypatch.setattr("sys.stdin", io.StringIO("{}"))
    for word, name in (("plan.json", "plan.json"), ("-", "standard input")):
        result = github("comment", word)
        assert result.code == 1
        assert result.err.startswith(f"{name}: this plan file cannot be used: it is not a plan;")
    assert host.asked == []


# --- environments that could not be planned ---------------------------------------------------------------------------

NONE = "## No environment could be planned\n"


def test_failed_plans_replace_the_comment_of_an_earlier_push(pipeline: Shell, host: CodeHost) -> None:
    both = ("staging.json", "plan.json")
    pipeline("comment", *both)
    (whole,) = host.bodies
    assert pipeline("comment", "--failed", "staging", "--failed", "prod") == Output(0, "", "Comment updated.\n")
    (body,) = host.bodies
    assert body.startswith(f"{STAGING}\n{OURS}\n{NONE}")
    assert all(NOT_PLANNED.format(name) in body for name in ("staging", "prod"))
    assert "## Plan" not in body
    assert pipeline("comment", "--failed", "staging", "--failed", "prod").err == "Comment unchanged.\n"
    assert pipeline("comment", *both).err == "Comment updated.\n"
    assert host.bodies == [whole]


def test_a_failed_first_plan_creates_the_comment_that_the_next_plan_updates(pipeline: Shell, host: CodeHost) -> None:
    host.say(ALICE, f"{NO_PLAN}\nof another user")
    assert pipeline("comment", "--failed", "staging").err == "Comment created.\n"
    assert host.bodies[1].startswith(f"{NO_PLAN}\n{NONE}")
    assert pipeline("comment", "--failed", "staging").err == "Comment unchanged.\n"
    assert pipeline("comment", "plan.json").err == "Comment updated.\n"
    assert host.bodies[1].startswith(f"{OURS}\n")
    assert len(host.bodies) == 2


def test_failed_environments_are_listed_beside_the_plans_of_others(pipeline: Shell, host: CodeHost) -> None:
    pipeline("comment", "plan.json", "--failed", "staging")
    assert "## Plan for 1 of 2 environments\n" in host.bodies[0]
    assert NOT_PLANNED.format("staging") in host.bodies[0]


def test_the_name_of_a_failed_environment_is_escaped(pipeline: Shell, host: CodeHost) -> None:
    pipeline("comment", "--failed", "`\n<img> @alice -->")
    assert NOT_PLANNED.replace("`{}`", "`` `\\n<img> @alice --> ``") in host.bodies[0]


def test_a_comment_about_nothing_is_a_usage_error(pipeline: Shell, host: CodeHost) -> None:
    assert pipeline("comment") == Output(64, "", "error: missing argument FILE, or option --failed ENV\n")
    assert host.asked == []
