"""Any response of the platform causes neither a traceback, nor a hang, nor a wrong deletion.

The platform is an application in this process, and has a socket where the connection is what is tested.
"""

from __future__ import annotations

import gzip
import json
import threading
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import AbstractAsyncContextManager, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from reconciler import kinds
from reconciler.api.client import Account
from reconciler.api.clock import MachineClock
from reconciler.api.platform import open_platform, open_reader
from reconciler.cli.main import main
from reconciler.engine.ports import Platform as PlatformPort
from reconciler.engine.ports import Reader
from reconciler.model import owner_record as owners
from reconciler.model.address import Address
from reconciler.model.owner_record import Owner
from reconciler.operations.runtime import OnRetry, OnWait, PlatformAccess, Runtime
from reconciler.testing.transport import AppTransport
from tests.harness.tiers import examples

KEYS = {kind.path: kind.list_key for kind in kinds.every() if kind.parent is None}
CODES = {0, 1, 2, 3, 4, 5, 6}

Answer = Callable[[str, str], bytes]  # method and path → body


class Platform(PlatformAccess):
    """Responds with 200 (201) and the configured bytes, and records the requests that change something."""

    host = "hostile"

    def __init__(self) -> None:
        self.answer: Answer = lambda method, path: b"{}"
        self.changed: list[tuple[str, str]] = []

    @property
    def base_url(self) -> str:
        return f"https://{self.host}"

    def serve(self, method: str, path: str) -> tuple[int, bytes]:
        if method != "GET":
            self.changed.append((method, path))
        return 201 if method == "POST" else 200, self.answer(method, path)

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        status, content = self.serve(scope["method"], scope["raw_path"].decode())
        headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(content))]
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": content})

    def open_reader(
        self, account: Account, *, on_wait: OnWait, on_retry: OnRetry
    ) -> AbstractAsyncContextManager[Reader]:
        transport = AppTransport({self.host: self})
        return open_reader(account, on_wait=on_wait, on_retry=on_retry, transport=transport)

    def open_platform(
        self, account: Account, *, on_wait: OnWait, on_retry: OnRetry, before_write: Callable[[], Awaitable[None]]
    ) -> AbstractAsyncContextManager[PlatformPort]:
        transport = AppTransport({self.host: self})
        return open_platform(
            account, on_wait=on_wait, on_retry=on_retry, before_write=before_write, transport=transport
        )


class Server(ThreadingHTTPServer):
    request_queue_size = (
        128  # a command opens many connections at once; one that finds no place is tried a second later
    )


@contextmanager
def listen(platform: Platform, **headers: str) -> Iterator[str]:
    """The address of a socket at which the platform answers."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        wbufsize = -1  # one piece per answer, and at once: pieces wait for each other
        disable_nagle_algorithm = True

        def serve(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length") or 0))
            status, content = platform.serve(self.command, urlsplit(self.path).path)
            self.send_response(status)
            for name, value in {"Content-Type": "application/json", **headers}.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        do_GET = do_POST = do_PATCH = do_PUT = do_DELETE = serve

        def log_message(self, *_: object) -> None:
            pass

    server = Server(("127.0.0.1", 0), Handler)
    server.handle_error = lambda *_: None  # type: ignore[method-assign]  # clients may close their connections
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.fixture
def platform() -> Platform:
    return Platform()


Run = Callable[..., str]


@pytest.fixture
def run(platform: Platform, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """A command in a project; its standard output and error."""

    async def no_sleep(self: MachineClock, seconds: float) -> None:
        return

    monkeypatch.setattr(MachineClock, "sleep", no_sleep)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("RECONCILER_BASE_URL", platform.base_url)
    monkeypatch.setenv("RECONCILER_API_KEY", "k")
    (tmp_path / "manifests").mkdir()
    (tmp_path / "reconciler.yaml").write_text(
        "version: 1\nstack: prod\nguards: {max_delete_percent: 100, max_update_percent: 100}\n", encoding="utf-8"
    )
    (tmp_path / "manifests/a.yaml").write_text(
        "kind: IPPolicy\nname: a\nspec: {description: x}\n---\n"
        "kind: TLSEdge\nname: a\nspec: {hostports: ['a.example.com:443']}\n---\n"
        "kind: BotUser\nname: a\nspec: {name: a}\n---\n"
        "kind: ReservedDomain\nname: a\nspec: {domain: a.example.com}\n",
        encoding="utf-8",
    )

    def run_command(*words: str, at: str = "") -> str:
        """`at` is the address of a socket."""
        if at:
            monkeypatch.setenv("RECONCILER_BASE_URL", at)
        capsys.readouterr()
        platform.changed.clear()
        began = time.monotonic()
        code = main(words, None if at else Runtime(platform=platform))
        assert time.monotonic() - began < 30
        out, err = capsys.readouterr()
        assert code in CODES
        assert "Traceback" not in err
        assert "unexpected" not in err, err
        return str(out + err)

    return run_command


def pages(objects: Callable[[str], Any]) -> Answer:
    """Responses that list the objects that `objects` returns for a path."""

    def answer(method: str, path: str) -> bytes:
        key = KEYS.get(path, path.rpartition("/")[2])
        return json.dumps({key: objects(path), "uri": "", "next_page_uri": None}).encode()

    return answer


DEEP = "[" * 900 + "]" * 900
RAW = {
    "nothing": b"",
    "null": b"null",
    "a number": b"7",
    "NaN": b"NaN",
    "infinity": b'{"x": Infinity}',
    "number too large": b'{"x": 1e999}',
    "a number of too many digits": b'{"x": ' + b"9" * 10_000 + b"}",
    "a list": b"[]",
    "an HTML page": b"<html>Sign in</html>",
    "half of it": b'{"tls_edges": [{"id": "edgtls_',
    "not UTF-8": b'{"x": "\xff\xfe"}',
    "UTF-16": '{"x": 1}'.encode("utf-16"),
    "a byte order mark": b"\xef\xbb\xbf{}",
    "deep lists": b"[" * 200_000,
    "deep maps": b'{"a":' * 200_000,
    "just deep enough to be read": DEEP.encode(),
}


@pytest.mark.parametrize("name", RAW)
def test_a_response_that_is_no_list_changes_nothing(run: Run, platform: Platform, name: str) -> None:
    first: list[str] = []

    def answer(method: str, path: str) -> bytes:
        first.append(path)
        return b"7" if len(RAW[name]) > 1_000_000 and len(first) > 1 else RAW[name]  # one of the large ones is enough

    platform.answer = answer
    for words in (["plan"], ["apply", "-y"], ["destroy", "-y"]):
        run(*words)
        assert platform.changed == []


def test_a_huge_answer_over_a_socket_changes_nothing(run: Run, platform: Platform) -> None:
    huge = b'{"x": "' + b"x" * 100_000_000 + b'"}'
    first: list[str] = []

    def answer(method: str, path: str) -> bytes:
        first.append(path)
        return b"7" if len(first) > 1 else huge

    platform.answer = answer
    with listen(platform) as address:
        for words in (["plan"], ["apply", "-y"], ["destroy", "-y"]):
            run(*words, at=address)
            assert platform.changed == []


def test_a_compression_bomb_is_not_decompressed(run: Run, platform: Platform) -> None:
    bomb = gzip.compress(b"x" * 100_000_000, 6)
    platform.answer = lambda method, path: bomb if path == "/edges/tls" else gzip.compress(b"7")
    with listen(platform, **{"Content-Encoding": "gzip"}) as address:
        run("plan", at=address)


def record(kind: str, name: str = "gone") -> str:
    return owners.write("", Owner("prod", Address(kind, name), "intent-1"))


METADATA = {
    "deep": '{"reconciler":' + DEEP + "}",
    "deep in a line": 'x\n#reconciler {"stack":' + DEEP + "}",
    "other stack": record("IPPolicy").replace("prod", "other"),
    "other kind": record("TLSEdge"),
    "no address": record("IPPolicy").replace("IPPolicy/gone", "../../x"),
    "stack is a list": '{"reconciler":{"stack":["prod"],"address":"IPPolicy/gone","intent":"i"}}',
    "applied is a number": '{"reconciler":{"stack":"x","address":"IPPolicy/gone","intent":"i","applied":7}}',
    "a number": 7,
    "a list": ["reconciler"],
    "a map": {"reconciler": {"stack": "prod", "address": "IPPolicy/gone", "intent": "i"}},
    "twice": '{"reconciler":' + record("IPPolicy") + ',"reconciler":7}',
}


@pytest.mark.parametrize("name", METADATA)
def test_an_unreadable_owner_record_claims_no_object(run: Run, platform: Platform, name: str) -> None:
    platform.answer = pages(lambda path: [{"id": "x_1", "metadata": METADATA[name]}])
    for words in (["plan"], ["drift"], ["destroy", "-y"]):
        run(*words)
        assert [call for call in platform.changed if call[0] == "DELETE"] == []


LIVE: dict[str, Any] = {
    "no id": {"description": "x"},
    "id is a number": {"id": 7},
    "id is a list": {"id": ["ipp_1"]},
    "id is empty": {"id": ""},
    "id is a path": {"id": "../../credentials"},
    "id is an address": {"id": "http://evil.example/"},
    "id has a line break": {"id": "ipp_1\r\nX: y"},
    "id is huge": {"id": "ipp_" + "x" * 100_000},
    "half a character": {"id": "ipp_1", "description": "\ud83d", "domain": "\udc00", "\ud800": "\udfff"},
    "deep description": {"id": "ipp_1", "description": json.loads("[" * 90 + "]" * 90)},
    "huge description": {"id": "ipp_1", "description": "x" * 1_000_000},
}


@pytest.mark.parametrize("name", LIVE)
def test_a_malformed_object_is_not_deleted(run: Run, platform: Platform, name: str) -> None:
    platform.answer = pages(lambda path: [LIVE[name]])
    for words in (["plan"], ["plan", "--format", "json"], ["drift"], ["apply", "-y", "--adopt"]):
        run(*words)
        assert [call for call in platform.changed if call[0] == "DELETE"] == []


def test_an_id_that_is_a_path_is_one_segment_of_the_request(run: Run, platform: Platform) -> None:
    body = {"id": "../credentials/cr_1?x#y", "metadata": record("IPPolicy")}
    platform.answer = pages(lambda path: [body] if path == "/ip_policies" else [])
    run("destroy", "-y")
    assert all(path.startswith("/ip_policies/") and path.count("/") == 2 for _, path in platform.changed)


def test_duplicate_keys_of_an_object_cause_no_deletion(run: Run, platform: Platform) -> None:
    twice = b'{"id": "x_1", "id": 7, "metadata": "", "metadata": {}}'
    platform.answer = lambda method, path: b'{"%s": [%s], "uri": ""}' % (KEYS.get(path, "x").encode(), twice)
    run("apply", "-y")
    assert [call for call in platform.changed if call[0] == "DELETE"] == []


# --- any response ---------------------------------------------------------------------------------------------------

WORDS = [
    "",
    "x",
    "a.example.com",
    "a.example.com:443",
    "prod",
    "a",
    "\ud800",
    "\x1b[2J",
    "1",
    "2020-01-01T00:00:00Z",
    "::",
]
ANY = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | st.sampled_from(WORDS)
    | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["id", "enabled", "value", "ip_policies", "backend", "type", "uri", "x"]), inner
        )
    ),
    max_leaves=6,
)


def odd(kind: Any) -> st.SearchStrategy[dict[str, Any]]:
    """Objects with fields of the kind and any values."""
    known = {name.partition(".")[0].removesuffix("[]") for field in kind.fields for name in _spellings(field)}
    named = st.sampled_from(sorted(known | {"metadata", "uri", "created_at"}))
    first = st.sampled_from([f"{kind.id_prefix}1", f"{kind.id_prefix}2"]) | ANY
    return st.builds(lambda id, rest: {**rest, kind.key: id}, first, st.dictionaries(named, ANY, max_size=8))


def _spellings(field: Any) -> Iterator[str]:
    yield field.name
    if field.read_as is not None:
        yield field.read_as.path


LISTS = {
    kind.path: st.lists(odd(kind) | ANY if kind.name == "TLSEdge" else odd(kind), max_size=3)
    for kind in kinds.every()
    if kind.parent is None
}


@settings(max_examples=examples(10), suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(lists=st.fixed_dictionaries(LISTS), answers=st.lists(ANY, min_size=1, max_size=3), adopt=st.booleans())
def test_objects_of_any_shape_cause_no_deletion(
    run: Run, platform: Platform, lists: dict[str, Any], answers: list[Any], adopt: bool
) -> None:
    def answer(method: str, path: str) -> bytes:
        if method == "GET" and path in KEYS:
            return pages(lambda path: lists[path])(method, path)
        return json.dumps(answers[len(path) % len(answers)]).encode()

    platform.answer = answer
    for words in (["plan"], ["drift", "--format", "json"], ["apply", "-y", *(["--adopt"] if adopt else [])]):
        run(*words)
        assert [call for call in platform.changed if call[0] == "DELETE"] == []
