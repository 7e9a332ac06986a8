"""What commands say of a result: the parts that were left out or not read, none, one and several of each.

The operations are replaced by their results; other tests run them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest
from msgspec.structs import replace

from reconciler import kinds
from reconciler.cli.commands import comment, import_
from reconciler.cli.terminal.formats import PlanOutput
from reconciler.model.access_change import AccessChange, Verdict
from reconciler.model.address import Address
from reconciler.model.owner_record import Owner
from reconciler.model.plan import Approval, Plan
from reconciler.model.snapshot import Listing, Live
from reconciler.operations import history
from reconciler.operations.accept_drift import Acceptance
from reconciler.operations.account_listing import AccountListing, ListedObject
from reconciler.operations.authoring import snapshot_files
from reconciler.operations.authoring.import_proposal import Proposal
from reconciler.operations.authoring.snapshot_files import WrittenSnapshot
from reconciler.operations.workspace import Workspace
from reconciler.planning.drift_acceptance import Declined
from reconciler.planning.importing.survey import LeftOut
from reconciler.rendering.plan.phrases import Flavour
from reconciler.rendering.wire import plan_json
from reconciler.store.reading import RecordedCall
from tests.harness.project import Output, Project


@pytest.fixture
def results(project: Project, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Replaces an operation by a result, and records the arguments that it gets."""
    project.environ |= {"RECONCILER_BASE_URL": "http://127.0.0.1:1", "RECONCILER_API_KEY": "key"}

    def put(home: object, name: str, result: object) -> list[Any]:
        arguments: list[Any] = []

        async def operation(*given: Any, **named: Any) -> object:
            arguments.append((given, named))
            return result

        monkeypatch.setattr(home, name, operation)
        return arguments

    return put


# --- history

CALL = RecordedCall("run-1", "apply", 0.0, "create IPPolicy/a", "IPPolicy/a", "create", "failed", None, "refused", 60.0)


@pytest.mark.parametrize(("words", "limit"), [([], 100), (["--limit", "1"], 1), (["--limit", "1000000000"], 10**9)])
def test_the_history_has_a_line_for_each_call_with_its_reason(
    project: Project, results: Any, words: list[str], limit: int
) -> None:
    arguments = results(history, "read_calls", (CALL, CALL))
    found = project("history", *words)
    assert found == Output(0, "1970-01-01 00:01:00Z  apply    failed     create IPPolicy/a: refused\n" * 2, "")
    assert arguments[0][0][1] == limit


def test_the_history_as_json_has_every_part_of_a_call_on_a_line(project: Project, results: Any) -> None:
    results(history, "read_calls", (CALL,))
    (line,) = project("history", "--format", "json").out.splitlines()
    assert json.loads(line) == {name: getattr(CALL, name) for name in RecordedCall.__struct_fields__}


# --- list

POLICY = kinds.get("IPPolicy")
OFFICE = Live("IPPolicy", "ipp_1", {"id": "ipp_1", "description": "Office"})
LISTED = ListedObject(POLICY, OFFICE, "prod", "IPPolicy/office")
WHY = {"TLSEdge": "refused", "BotUser": "timed out"}


@pytest.mark.parametrize(
    ("objects", "incomplete", "words", "code", "err"),
    [
        ((LISTED,), {}, [], 0, ""),
        ((), {}, [], 0, "No objects found.\n"),
        ((), {}, ["-q"], 0, ""),
        ((), WHY, [], 1, "".join(f"error: the list of {kind} is incomplete: {why}\n" for kind, why in WHY.items())),
        ((LISTED,), {"TLSEdge": "refused"}, [], 1, "error: the list of TLSEdge is incomplete: refused\n"),
    ],
)
def test_an_account_is_listed_with_the_lists_that_are_incomplete(
    project: Project,
    results: Any,
    objects: tuple[ListedObject, ...],
    incomplete: Mapping[str, str],
    words: list[str],
    code: int,
    err: str,
) -> None:
    results(Workspace, "list_account", AccountListing(objects, incomplete))
    found = project("list", *words)
    assert (found.code, found.err, "ipp_1" in found.out) == (code, err, bool(objects))
    written = json.loads(project("list", "--format", "json").out)
    owner = {"stack": "prod", "address": "IPPolicy/office"}
    assert (written["complete"], written["incomplete"]) == (not incomplete, dict(incomplete))
    assert [(found["kind"], found["id"], found["owner"]) for found in written["objects"]] == [
        ("IPPolicy", "ipp_1", owner) for _ in objects
    ]


@pytest.mark.parametrize(
    ("listing", "words", "code", "err"),
    [
        (Listing((OFFICE,)), [], 0, ""),
        (Listing(()), [], 0, "No IPPolicy objects found.\n"),
        (Listing(()), ["-q"], 0, ""),
        (Listing((), complete=False, why="refused"), [], 1, "error: the list of IPPolicy is incomplete: refused\n"),
    ],
)
def test_a_list_of_a_kind_reports_whether_it_is_complete(
    project: Project, results: Any, listing: Listing, words: list[str], code: int, err: str
) -> None:
    results(Workspace, "list_objects", listing)
    found = project("list", "IPPolicy", *words)
    assert (found.code, found.err) == (code, err)
    assert json.loads(project("list", "IPPolicy", "--format", "json").out)["complete"] is listing.complete


# --- snapshot


UNSIGNED = "not signed: RECONCILER_SNAPSHOT_KEY is not set"
INCOMPLETE = "warning: the list of BotUser is incomplete: refused\n"


@pytest.mark.parametrize(
    ("written", "words", "err"),
    [
        (WrittenSnapshot(0, True, {}), [], "Wrote 0 objects to x.json, signed.\n"),
        (WrittenSnapshot(1, False, {}), [], f"Wrote 1 object to x.json, {UNSIGNED}.\n"),
        (WrittenSnapshot(2, True, {"BotUser": "refused"}), [], f"{INCOMPLETE}Wrote 2 objects to x.json, signed.\n"),
        (WrittenSnapshot(2, True, {"BotUser": "refused"}), ["-q"], INCOMPLETE),
    ],
)
def test_a_snapshot_names_its_size_and_the_lists_that_are_incomplete(
    project: Project, results: Any, written: WrittenSnapshot, words: list[str], err: str
) -> None:
    results(snapshot_files, "write_snapshot", written)
    assert project("snapshot", "--out", "x.json", *words) == Output(0, "", err)


# --- import


def propose(skipped: int = 0, wrong: int = 0, **more: Any) -> Proposal:
    left_out = [LeftOut("Endpoint", f"ep_{place}", "ephemeral") for place in range(skipped)]
    left_out += [LeftOut("TLSEdge", "", "not read", wrong=True) for _ in range(wrong)]
    return Proposal((), tuple(left_out), {}, {}, "manifests", **more)


@pytest.mark.parametrize(
    ("skipped", "listed", "more"), [(0, 0, ""), (1, 1, ""), (20, 20, ""), (21, 20, "1 more"), (99, 20, "79 more")]
)
def test_twenty_skipped_objects_are_listed_and_the_json_has_all(
    capsys: pytest.CaptureFixture[str], skipped: int, listed: int, more: str
) -> None:
    proposal = propose(skipped, wrong=1)
    import_._show(proposal, frozenset(), dry_run=False, form="json")
    printed = capsys.readouterr()
    lines = [line for line in printed.err.splitlines() if line.startswith("skipped: ")]
    assert len([line for line in lines if line.endswith(": ephemeral")]) == listed
    assert [line for line in lines if "more" in line] == (
        [f"skipped: {more} (list all with --format json)"] if more else []
    )
    assert "not imported: TLSEdge: not read\n" in printed.err
    found = json.loads(printed.out)["left_out"]
    assert len(found) == skipped + 1
    assert found[-1] == {"kind": "TLSEdge", "id": None, "why": "not read", "wrong": True}


def test_an_object_of_another_stack_names_its_owner(capsys: pytest.CaptureFixture[str]) -> None:
    owner = Owner("other", Address("IPPolicy", "theirs"), "")
    import_._show(propose(owners={Address("IPPolicy", "ours"): owner}), frozenset(), dry_run=False, form="text")
    assert capsys.readouterr().err == (
        "IPPolicy/ours is managed by stack other as IPPolicy/theirs; "
        "declare `ensure: forgotten` there and apply it before you apply this stack\n"
    )


# --- comment


@pytest.mark.parametrize(
    ("plans", "text"),
    [
        (0, "See the log of"),
        (1, "The page with the dependency graph is an artifact of"),
        (2, "The pages are artifacts of"),
    ],
)
def test_a_comment_names_the_run_with_the_pages(
    project: Project, monkeypatch: pytest.MonkeyPatch, plans: int, text: str
) -> None:
    for name, value in {"GITHUB_ACTIONS": "true", "GITHUB_REPOSITORY": "o/i", "GITHUB_RUN_ID": "7"}.items():
        monkeypatch.setenv(name, value)
    outputs = [
        PlanOutput(plan, plan_json.write_plan(plan), project.root, Flavour.PLAN)
        for plan in (Plan(f"s{place}") for place in range(plans))
    ]
    assert f"\n{text} [this run](https://github.com/o/i/actions/runs/7).\n" in comment._render(
        outputs, (), (), ("prod",)
    )
    monkeypatch.delenv("GITHUB_RUN_ID")
    assert "this run" not in comment._render(outputs, (), (), ("prod",))


# --- accept

OPENING = AccessChange(
    "tls://a.example.com", Verdict.WIDENS, "10.0.0.0/8", "everyone", "", True, ("IPPolicyRule/office",), ""
)
NEEDED = Approval("widens_access", "*", 1, "an entry point lets in more requests")


@pytest.mark.parametrize("quiet", [True, False])
@pytest.mark.parametrize("granted", [True, False])
def test_values_that_open_an_entry_point_are_shown_before_they_are_refused(
    project: Project, results: Any, quiet: bool, granted: bool
) -> None:
    acceptance = Acceptance(
        Plan("prod"),
        texts={"notes.yaml": ("a\n", "b\n")},
        declined=[Declined("IPPolicy/b", "it is in no manifest")],
        access=(OPENING,),
        approvals=(replace(NEEDED, granted=granted),),
    )
    project.write("notes.yaml", "a\n")
    results(Workspace, "accept_drift", acceptance)
    found = project("accept", *(["-q"] if quiet else []))
    assert ("tls://a.example.com" in found.err) is (not quiet or not granted)
    assert (project.root / "notes.yaml").read_text() == ("b\n" if granted else "a\n")
    if granted:
        assert (found.code, found.out.splitlines()[-2:]) == (0, ["-a", "+b"])
        assert "not accepted: IPPolicy/b: it is in no manifest\n" in found.err
        assert ("Accepted 0 values in 1 file.\n" in found.err) is not quiet
    else:
        assert (found.code, found.out) == (4, "")
        assert found.err.endswith("nothing was written: approval required: pass --allow widens_access:*=1\n")
