"""A project with a secret in each place that can have one, and its whole life at the command line.

Every command is a process, in `make test` most of them a forked one. Its output, and each file other than
manifests and sinks, is recorded to be searched.
"""

from __future__ import annotations

import json
import os
import secrets
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from tests.harness.platform import Sandbox
from tests.kinds import pems
from tests.security.canaries import fresh

AWKWARD = '"<&+/'
SOURCES = ("manifests", "wrong", "pki")  # where secrets are written by the user
SINKS = ("secrets",)  # where they are delivered to


def private_part(pem: str) -> str:
    """The secret piece of a key in PEM: the certificate repeats the rest."""
    body = "".join(line for line in pem.splitlines() if not line.startswith("-"))
    return body[52:88]  # of 32 secret octets, which begin at octet 36 of a P-256 key in PKCS #8


def make_secrets() -> dict[str, str]:
    """One secret for each place that can have one."""
    return {
        "api key": fresh("+/=<&"),
        "webhook secret": fresh(AWKWARD),
        "webhook secret from a variable": fresh(AWKWARD),
        "metrics key": fresh(AWKWARD),
        "ingestion secret": fresh(AWKWARD),
        "cloud secret": fresh(AWKWARD),
        "SAML metadata": fresh(),
        "policy secret": fresh(AWKWARD),
        "policy secret from the environment": fresh(AWKWARD),
        "policy secret in a file": fresh(),
        "secret header": fresh(AWKWARD),
    }


@dataclass
class Life:
    """The project's folder, the folders around it, and all recorded outputs."""

    base: Path
    sandbox: Sandbox
    known: dict[str, str]
    flags: tuple[str, ...] = ()  # of Python, for every command
    commands: Path | None = None  # where the command `reconciler` is, for commands without a signal or flags
    outputs: list[tuple[str, bytes]] = field(default_factory=list)
    codes: dict[str, int] = field(default_factory=dict)

    @property
    def root(self) -> Path:
        return self.base / "project"

    @property
    def environ(self) -> dict[str, str]:
        return {
            "PATH": f"{self.base / 'bin'}:{os.environ['PATH']}",
            "HOME": str(self.base / "home"),
            "TMPDIR": str(self.base / "tmp"),
            "PYTHONPATH": str(Path.cwd()),
            "RECONCILER_BASE_URL": self.sandbox.base_url,
            "MY_API_KEY": self.known["api key"],
            "METRICS_KEY": self.known["metrics key"],
            "CLOUD_SECRET": self.known["cloud secret"],
            "POLICY_SECRET": self.known["policy secret from the environment"],
            "TLS_KEY": pems.private_key("canary"),
        }

    # --- building ----------------------------------------------------------------------------------------------------

    def build(self) -> None:
        for name in ("bin", "home", "tmp", "children", "project"):
            (self.base / name).mkdir(parents=True)
        for name in ("objects", "refs"):
            (self.root / ".git" / name).mkdir(parents=True)
        (self.root / ".git/HEAD").write_text("ref: refs/heads/main\n", encoding="utf-8")  # so that Git is asked
        for name, text in _files(self.known).items():
            path = self.root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        for name, script in _PROGRAMS.items():
            program = self.base / "bin" / name
            program.write_text(script, encoding="utf-8")
            program.chmod(0o755)

    # --- commands ----------------------------------------------------------------------------------------------------

    def run(self, *words: str, code: int | None = None, **environ: str) -> bytes:
        """Runs a command to its end. Returns its standard output."""
        command = None if self.commands is None or words[0] in _OWN else self.commands / "reconciler"
        with self.start(*words, command=command, **environ) as process:
            out, err = process.communicate(timeout=120)
        self._keep(words, process, out, err)
        if code is not None:
            assert process.returncode == code, f"{words}: {process.returncode}\n{out.decode()}{err.decode()}"
        return bytes(out)

    def run_with_each(self, name: str, texts: Iterable[str], *commands: list[str], **environ: str) -> list[int]:
        """Runs commands in one process for each text of a file. Returns their exit codes."""
        cases = self.root / "wrong/cases.json"
        cases.parent.mkdir(exist_ok=True)
        cases.write_text(json.dumps([[name, text, commands] for text in texts]), encoding="utf-8")
        self.run("each", str(cases), code=0, **environ)
        codes = json.loads(cases.read_text(encoding="utf-8"))
        assert isinstance(codes, list)
        return codes

    @contextmanager
    def start(self, *words: str, command: Path | None = None, **environ: str) -> Iterator[subprocess.Popen[bytes]]:
        own = words[0] in _OWN
        python = [sys.executable, *self.flags, *(["-c", _OWN[words[0]]] if own else ["-m", "reconciler"])]
        process = subprocess.Popen(
            [*([str(command)] if command else python), *words[own:]],
            cwd=self.root,
            env={**self.environ, **environ},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        try:
            self.outputs.append((f"argv of {words[0]}", Path(f"/proc/{process.pid}/cmdline").read_bytes()))
            yield process
        finally:
            if process.poll() is None:
                process.kill()
                process.communicate()

    def interrupt(self, *words: str, on: str, by: signal.Signals) -> None:
        """Runs a command, and sends it a signal while the platform delays the response to this request."""
        self.sandbox.forget_log()
        self.sandbox.fault(on, then="answer", delay=1.0)
        with self.start(*words) as process:
            deadline = time.monotonic() + 60
            while process.poll() is None and time.monotonic() < deadline:
                if (self.root / "state/reconciler.db-wal").exists() and self._fault_was_met():
                    break
                time.sleep(0.02)
            process.send_signal(by)
            out, err = process.communicate(timeout=60)
        self._keep((by.name, *words), process, out, err)
        self.sandbox.delete("/_sandbox/faults")

    def _fault_was_met(self) -> bool:
        return any(fault.get("seen") for fault in self.sandbox.get("/_sandbox/faults").get("faults", []))

    def _keep(self, words: tuple[str, ...], process: subprocess.Popen[bytes], out: bytes, err: bytes) -> None:
        name = f"{len(self.codes)} {' '.join(words)}"
        self.codes[name] = process.returncode
        self.outputs += [(f"stdout of {name}", out), (f"stderr of {name}", err)]
        # A file that exists now may be deleted later.
        self.outputs += list(self.list_files(f"after {name}"))

    def refuse_quoting(self, on: str, code: str, times: int = 1, status: int = 400) -> None:
        """Has the platform repeat all secrets in a refusal: in each encoding, and across the end of a cut text."""
        from tests.security.canaries import spellings

        every = [spelling for secret in self.known.values() for spelling in spellings(secret)]
        # A text is cut where it gets long: one of the pieces of each lies across the cut.
        pieces = [*every, *("." * (480 - secrets.randbelow(20)) + known for known in self.known.values())]
        msg = " | ".join([self.known["api key"], *self.known.values(), *pieces])
        body = {"error_code": f"ERR_NGROK_{code}", "status_code": status, "msg": msg, "details": {"operation_id": msg}}
        self.sandbox.fault(on, then="status", status=status, body=body, times=times)

    def list_files(self, when: str) -> Iterator[tuple[str, bytes]]:
        """Each file outside sources and sinks, with its content."""
        for path in sorted(self.base.rglob("*")):
            below = path.relative_to(self.base).parts
            if below[0] == "bin" or below[:2] == ("project", "reconciler.yaml") or not path.is_file():
                continue
            if below[0] == "project" and len(below) > 1 and below[1] in (*SOURCES, *SINKS):
                continue
            yield f"{path.relative_to(self.base)} {when}", path.read_bytes()


def _files(known: Mapping[str, str]) -> dict[str, str]:
    quoted = {what: _quote(secret) for what, secret in known.items()}
    return {
        "reconciler.yaml": (
            "version: 1\nstack: prod\nplatform: {api_key: {from_env: MY_API_KEY}}\n"
            "limits: {settle_seconds: 3}\n"
            f"variables: {{hook: {quoted['webhook secret from a variable']}}}\n"
        ),
        "pki/cert.pem": pems.certificate("canary"),
        "pki/saml.xml": pems.saml(f"https://idp.example.com/{known['SAML metadata']}") + "\n",
        "pki/policy.yaml": (
            "on_http_request:\n  - actions:\n      - type: oauth\n        config:\n          provider: google\n"
            f"          client_id: shown\n          client_secret: {known['policy secret in a file']}\n"
            f"      - type: deny  # {known['policy secret in a file']}\n"
        ),
        "manifests/all.yaml": f"""\
kind: CloudEndpoint
name: inline
spec:
  url: https://inline.internal
  traffic_policy:
    on_http_request:
      - actions:
          - type: verify-webhook
            config: {{provider: github, secret: {quoted["policy secret"]}}}
          - type: basic-auth
            config: {{credentials: [{{from_env: POLICY_SECRET}}]}}
          - type: deny
---
kind: CloudEndpoint
name: text
spec: {{url: "https://text.internal", traffic_policy: {{from_file: pki/policy.yaml}}}}
---
kind: HTTPResponseBackend
name: headers
spec: {{headers: {{authorization: {quoted["secret header"]}}}}}
---
kind: TunnelCredential
name: file
deliver: {{token: {{to_file: secrets/file.token}}}}
spec: {{}}
---
kind: TunnelCredential
name: dotenv
deliver: {{token: {{to_dotenv: {{file: secrets/agent.env, name: TOKEN}}}}}}
spec: {{}}
---
kind: TunnelCredential
name: kubernetes
deliver: {{token: {{to_kubernetes_secret: {{file: secrets/agent.yaml, name: agent}}}}}}
spec: {{}}
---
kind: TunnelCredential
name: command
deliver: {{token: {{to_command: {{run: [keep-token], check: [keep-token, check]}}}}}}
spec: {{}}
---
kind: TLSCertificate
name: app
spec:
  certificate_pem: {{from_file: pki/cert.pem}}
  private_key_pem: {{from_env: TLS_KEY}}
---
kind: TunnelGroupBackend
name: app
spec: {{labels: {{app: app}}}}
---
kind: HTTPSEdge
name: app
spec: {{hostports: ["app.example.com:443"]}}
---
kind: ReservedDomain
name: app
spec: {{domain: app.example.com}}
---
kind: HTTPSEdgeRoute
name: hooks
spec:
  edge_id: {{ref: HTTPSEdge/app}}
  match_type: path_prefix
  match: /hooks
  webhook_verification: {{provider: github, secret: {quoted["webhook secret"]}}}
---
kind: HTTPSEdgeRoute
name: more-hooks
spec:
  edge_id: {{ref: HTTPSEdge/app}}
  match_type: path_prefix
  match: /more-hooks
  webhook_verification: {{provider: gitlab, secret: "${{{{ var.hook }}}}"}}
---
kind: HTTPSEdgeRoute
name: people
spec:
  edge_id: {{ref: HTTPSEdge/app}}
  match_type: path_prefix
  match: /people
  saml: {{idp_metadata: {{from_file: pki/saml.xml}}}}
---
kind: EventDestination
name: metrics
spec: {{target: {{metrics: {{api_key: {{from_env: METRICS_KEY}}}}}}}}
---
kind: EventDestination
name: logs
spec:
  target:
    logs:
      log_group_arn: arn:aws:logs:eu-central-1:123456789012:log-group:a
      auth: {{creds: {{cloud_access_key_id: AKIA, cloud_secret_access_key: {{from_env: CLOUD_SECRET}}}}}}
---
kind: EventDestination
name: ingestion
spec:
  target:
    ingestion:
      tenant_id: t
      client_id: c
      client_secret: {quoted["ingestion secret"]}
      logs_ingestion_uri: https://logs.example.com
      data_collection_rule_id: r
      data_collection_stream_name: s
""",
    }


def _quote(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def wrong_manifests(secret: str) -> dict[str, str]:
    """Manifests in which a secret stands where it is not understood. `secret` is plain letters and digits."""
    route = (
        "kind: HTTPSEdgeRoute\nname: {name}\nspec:\n  edge_id: x\n  webhook_verification:\n    provider: github\n    "
    )
    written = {
        "alias": f"secret: *{secret}",
        "tag": f"secret: !{secret} x",
        "verbatim-tag": f"secret: !<tag:yaml.org,2002:{secret}> x",
        "anchor-twice": f"secret: &{secret} [*{secret}]",
        "wrong-tag": f"secret: !!int {secret}",
        "list": f"secret: [{secret}]",
        "map": f"secret: {{a: {secret}}}",
        "env-beside": f"secret: {{from_env: A, b: {secret}}}",
        "reference": f'secret: "${{{{ {secret} }}}}"',
        "unclosed-reference": f'secret: "${{{{ {secret}"',
        "with-reference": f'secret: "a {secret} ${{{{ HTTPSEdge/x.id }}}}"',
        "unclosed": f'secret: "{secret}',
        "colon": f"secret: {secret}: x",
        "list-of-env": f"secret: {{from_env: [{secret}]}}",
        "tab": f"secret:\n\t{secret}",
        "percent": f"secret: @{secret}",
        "backquote": f"secret: `{secret}",
        "escape": f'secret: "{secret}\\q"',
        "twice": f"secret: a\n    secret: {secret}",
        "merge": f"<<: {secret}\n    secret: x",
        "number": "secret: " + "".join(str(ord(letter) % 10) for letter in secret),
        "infinite": "secret: .inf",
        "too-long": f"secret: {secret}\n    provider: [{secret}]",
    }
    made = {name: route.format(name=name) + text + "\n" for name, text in written.items()}
    made["pem"] = f"kind: TLSCertificate\nname: a\nspec:\n  certificate_pem: {secret}\n  private_key_pem: {secret}\n"
    made["half-pem"] = (
        "kind: TLSCertificate\nname: b\nspec:\n  certificate_pem: x\n  private_key_pem: |\n"
        f"    -----BEGIN PRIVATE KEY-----\n    {secret}\n    -----END PRIVATE KEY-----\n"
    )
    made["target"] = (
        "kind: EventDestination\nname: a\nspec:\n  target:\n"
        f"    metrics: {{api_key: [{secret}], servise: x}}\n    ingestion: {{client_secret: {{a: {secret}}}}}\n"
    )
    made["saml"] = f"kind: HTTPSEdgeRoute\nname: s\nspec:\n  edge_id: x\n  saml: {{idp_metadata: [{secret}]}}\n"
    made["saml-text"] = f"kind: HTTPSEdgeRoute\nname: t\nspec:\n  edge_id: x\n  saml: {secret}\n"
    return made


def wrong_projects(secret: str) -> Mapping[str, str]:
    """Project files in which the key stands where it is not understood."""
    head = "version: 1\nstack: prod\n"
    return {
        "key in a list": f"{head}platform: {{api_key: [{secret}]}}\n",
        "key in a map": f"{head}platform: {{api_key: {{key: {secret}}}}}\n",
        "key as a platform": f"{head}platform: {secret}\n",
        "key in the address": f"{head}platform: {{base_url: 'https://user:{secret}@example.com'}}\n",
        "key in the query": f"{head}platform: {{base_url: 'https://example.com?key={secret}'}}\n",
        "key with a star": f"{head}platform: {{api_key: *{secret}}}\n",
        "key with a tag": f"{head}platform: {{api_key: !{secret} }}\n",
        "password of the store": f"{head}store: 'nosuch://user:{secret}@localhost/x'\nplatform: {{api_key: x}}\n",
    }


# Both find their folder by their own path, since a child gets almost nothing of the environment.
_CHILD = """\
#!/bin/sh
cat /proc/$$/environ > "$(dirname "$0")/../children/{name}-$$.environ"
tr '\\0' ' ' < /proc/$$/cmdline > "$(dirname "$0")/../children/{name}-$$.cmdline"
"""
_PROGRAMS = {
    "git": _CHILD.format(name="git") + "echo 0123456789abcdef\n",
    "keep-token": _CHILD.format(name="keep-token")
    + 'test "$1" = check || { mkdir -p secrets; cat > secrets/command.token; }\n',
}

_OWN = {
    # Raises an unexpected error whose message contains all declarations.
    "broken": """\
import sys
from reconciler.cli.main import main
from reconciler.planning import planner
def broken(*everything):
    held = list(everything)
    raise RuntimeError(f"{held!r} {[dict(each.spec) for each in everything[0].declarations.values()]!s}")
planner.plan = broken
sys.exit(main(sys.argv[1:]))
""",
    "each": """\
import json, pathlib, sys
from reconciler.cli.main import main
cases = pathlib.Path(sys.argv[1])
codes = []
for name, text, commands in json.loads(cases.read_text()):
    pathlib.Path(name).write_text(text)
    codes += [main(words) for words in commands]
cases.write_text(json.dumps(codes))
""",
}
