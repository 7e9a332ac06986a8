"""No output and no file has a secret, whole, in part or encoded, in the whole life of a project at the command line."""

from __future__ import annotations

import signal
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from reconciler.cli.terminal.formats import FORMS
from tests.harness.platform import SandboxProcess
from tests.harness.tiers import full
from tests.kinds import pems
from tests.security.canaries import TOKEN, Canaries, fresh
from tests.security.life import Life, make_secrets, private_part, wrong_manifests, wrong_projects

CLEAN = "CanaryWithoutPunctuation" + fresh()  # for places where punctuation would mean something of its own


@pytest.fixture(scope="module", params=["plain", pytest.param("developer mode", marks=full)])
def life(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, commands: Path) -> Iterator[Life]:
    """In Python's developer mode, which prints more, the platform also sends a status that is retried for long."""
    known = make_secrets()
    thorough = request.param == "developer mode"
    with SandboxProcess(api_key=known["api key"]) as sandbox:
        flags = ("-X", "dev", "-W", "default") if thorough else ()
        made = Life(tmp_path_factory.mktemp("life"), sandbox, known, flags, None if flags else commands)
        made.build()
        _live(made, (401, 404, 500) if thorough else (401, 404))
        yield made


def _live(life: Life, refusals: Sequence[int]) -> None:
    """Runs commands from the first plan to the last deletion, with injected faults, refusals and kills."""
    life.run("validate", code=0)
    life.run("plan", *_forms("plan"), code=0)
    life.run("plan", "--out", "plan.json", "--no-color", code=0)
    life.run("show", "plan.json", code=0)
    life.run("show", "plan.json", "--format", "json", code=0)
    for form in ("dot", "mermaid", "svg"):
        life.run("graph", "--format", form, code=0)
    life.run("graph", "--plan", "plan.json", code=0)
    life.run("explain", "HTTPSEdgeRoute.webhook_verification.secret", code=0)
    life.run("broken", "plan", RECONCILER_DEBUG="1", code=1)
    life.run("broken", "plan", code=1)
    _refuse(life, refusals)
    _cut(life)
    for by, events in ((signal.SIGKILL, "events.ndjson"), (signal.SIGINT, "events2.ndjson")):
        _lose_a_credential(life)
        life.interrupt("apply", "-y", "--events", events, on="POST /credentials", by=by)
    life.run("apply", "-y", "--events", "events3.ndjson", RECONCILER_DEBUG="1", code=0)
    life.run("plan", "--detailed-exitcode", code=0)
    _drift(life)
    life.run("fmt", "--check")
    life.run("history", code=0)
    life.run("history", "--format", "json", code=0)
    life.run("report", code=0)
    life.run("destroy", "-y", "--events", "-", "--allow", "delete:ReservedDomain=1", "--allow", "delete:*=100")
    _unwelcome(life)


def _forms(name: str) -> list[str]:
    """Options for each format, each into a file of its own; all files are searched after each command."""
    return [word for form in FORMS for word in ("--format", f"{form}={name}-as.{form}")]


def _refuse(life: Life, refusals: Sequence[int]) -> None:
    """Every create of something with a secret is refused with all secrets in the message: at once, and after a wait.

    Every read is refused with each of the statuses.
    """
    for number, collection in enumerate(("/event_destinations", "/tls_certificates", "/edges/https/*", "/credentials")):
        life.refuse_quoting(f"POST {collection}", "446", times=2)
        life.refuse_quoting(f"POST {collection}", "400", times=0)
        life.refuse_quoting(f"PUT {collection}", "400", times=0)
        life.run("apply", "-y", "--events", f"refused{number}.ndjson", "--parallelism", "2")
        life.sandbox.delete("/_sandbox/faults")
    for status in refusals:
        life.refuse_quoting("GET *", "400", times=0, status=status)
        life.run("plan", "--target", "BotUser/*")
        life.sandbox.delete("/_sandbox/faults")


def _cut(life: Life) -> None:
    """Connections that are cut after the commit."""
    for on in ("POST /credentials", "POST /event_destinations", "POST /tls_certificates"):
        life.sandbox.fault(on, then="commit-then-cut")
    life.run("apply", "-y", "--events", "-")
    life.sandbox.delete("/_sandbox/faults")


def _lose_a_credential(life: Life) -> None:
    """Deletes a credential on the platform, so that the next apply creates it again."""
    lost = life.sandbox.get("/credentials")["credentials"][0]["id"]
    life.sandbox.delete(f"/credentials/{lost}")


def _drift(life: Life) -> None:
    """Secrets that were changed on the platform are secrets too."""
    edge = life.sandbox.get("/edges/https")["https_edges"][0]["id"]
    route = next(route for route in life.sandbox.get(f"/edges/https/{edge}")["routes"] if route["match"] == "/hooks")
    life.known["secret by hand"] = fresh('"<&')
    module = {"provider": "github", "secret": life.known["secret by hand"]}
    life.sandbox.put(f"/edges/https/{edge}/routes/{route['id']}/webhook_verification", module)
    life.run("drift", "--record", *_forms("drift"), code=2)
    life.run("snapshot", "--out", "snapshot.json", code=0)
    life.run("plan", "--snapshot", "snapshot.json", *_forms("taken"), code=0)
    life.run("plan", "--out", "drifted.json", code=0)
    life.run("show", "drifted.json", *_forms("shown"), code=0)
    life.run("apply", "drifted.json", "-y", "--events", "-", code=0)


def _unwelcome(life: Life) -> None:
    """Secrets in places where they are invalid: problems name the place, not the value."""
    life.known["secret in a wrong place"] = CLEAN
    manifests = life.root / "manifests/all.yaml"
    kept = manifests.read_text(encoding="utf-8")
    # One at a time where a file is not YAML at all; validation tells all there is.
    wrong = wrong_manifests(CLEAN)
    codes = life.run_with_each("manifests/all.yaml", wrong.values(), ["validate"])
    assert [name for name, code in zip(wrong, codes, strict=True) if code != 1] in ([], ["number"])  # it may be one
    manifests.write_text(kept, encoding="utf-8")
    life.run_with_each("reconciler.yaml", wrong_projects(CLEAN).values(), ["history"], ["validate"], MY_API_KEY="")


@pytest.fixture(scope="module")
def canaries(life: Life) -> Canaries:
    """All secrets, including those that the platform issued, read from where they were delivered."""
    issued = {f"token in {path.name}": _token(path) for path in sorted((life.root / "secrets").iterdir())}
    pem = pems.private_key("canary")
    return Canaries({**life.known, **issued, "TLS key": private_part(pem)})


def _token(path: Path) -> str:
    found = TOKEN.search(path.read_bytes())
    assert found is not None, f"{path.name} holds no token"
    return found[0].decode().partition("_")[2]  # what is before it is the credential's id, which is no secret


def test_every_sink_got_a_token(canaries: Canaries) -> None:
    delivered = {what for what in canaries.known if what.startswith("token in ")}
    assert delivered == {f"token in {name}" for name in ("file.token", "agent.env", "agent.yaml", "command.token")}


def test_no_output_or_file_contains_a_piece_of_a_secret(life: Life, canaries: Canaries) -> None:
    places = [*life.outputs, *life.list_files("at the end")]
    once = {text: place for place, text in places}  # most files are as they were after the command before
    hits = canaries.within((place, text) for text, place in once.items())
    print(
        f"{len(canaries.known)} secrets, {canaries.runs} runs of eight, {len(places)} places, {canaries.searched} bytes"
    )
    assert hits == [], "\n".join(hits[:60])


def test_no_output_or_file_contains_a_token(life: Life) -> None:
    """This includes credentials that were deleted again because their token could not be delivered."""
    places = [*life.outputs, *life.list_files("at the end")]
    assert [place for place, text in places if TOKEN.search(text)] == []


def test_the_injected_errors_occurred(life: Life) -> None:
    output = b"".join(text for place, text in life.outputs if place.startswith("stderr of "))
    assert output.count(b"(secret)") > 20  # the platform quoted them, and they were masked
    assert output.count(b"(key)") > 5
    assert b"Traceback" in output
    assert [code for name, code in life.codes.items() if "SIGKILL" in name or "SIGINT" in name] == [-9, 130]


def test_each_file_was_searched(life: Life) -> None:
    names = {place.partition(" ")[0] for place, _ in life.list_files("now")}
    assert {"project/plan.json", "project/events.ndjson", "project/state/reconciler.db"} <= names
    assert {f"project/{name}-as.{form}" for name in ("plan", "drift", "shown") for form in FORMS} <= names
    assert any(name.startswith("children/git") for name in names)
    assert any(name.startswith("children/keep-token") for name in names)
    assert [path.name for path in (life.base / "tmp").iterdir()] == []


def test_a_file_with_a_secret_is_for_its_owner_only(life: Life) -> None:
    for path in (life.root / "secrets").iterdir():
        if path.name != "command.token":  # what a command does with it is its own business
            assert path.stat().st_mode & 0o777 == 0o600
    assert (life.root / "state/reconciler.db").stat().st_mode & 0o077 == 0
    assert (life.root / "plan.json").stat().st_mode & 0o077 == 0
