"""README.md: the twelve lines are a project, and the commands print the output on the page."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.examples import transcripts

PAGE = Path(__file__).parents[2] / "README.md"

BEFORE = """\
```console
$ export RECONCILER_API_KEY=sandbox
$ reconciler sandbox --port 4041 > sandbox.log &
$ cat > reconciler.yaml <<'END'
> {version: 1, stack: shop, platform: {base_url: http://127.0.0.1:4041, api_key: {from_env: RECONCILER_API_KEY}}}
> END
$ faults='{"retry_after": 86400, "faults": [{"host": "shop.example.com", "error_code": "DNS_ERROR"}]}'
$ curl --silent --output answer.json --request PUT --header "Content-Type: application/json" --data "$faults" \\
>   http://127.0.0.1:4041/_sandbox/provisioning
```
"""

# What somebody changes in the dashboard, before the night.
OPENED = """\
```console
$ find() { reconciler list CloudEndpoint --format json | sed -n 's/.*"id": "\\(ep_[^"]*\\)".*/\\1/p' | head -1; }
$ opened=$(sed -n '/on_http_request/,$p' manifests/shop.yaml | sed 's#203.0.113.0/24#0.0.0.0/0#' | sed 's/^    //')
$ python3 -c 'import json, sys; print(json.dumps({"traffic_policy": sys.argv[1]}))' "$opened" > opened.json
$ key="Authorization: Bearer sandbox" version="Ngrok-Version: 2" type="Content-Type: application/json"
$ curl --silent --output answer.json --request PATCH --header "$key" --header "$version" --header "$type" \\
>   --data @opened.json http://127.0.0.1:4041/endpoints/$(find)
```
"""

AFTER = """
```console
$ kill $!
```
"""
NIGHT = "## At night\n"


@pytest.fixture
def manifest() -> str:
    [block] = re.findall(r"^```yaml\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    return str(block)


def test_the_manifests_of_the_readme_have_twelve_lines(manifest: str) -> None:
    assert len(manifest.splitlines()) == 12


def test_the_commands_of_the_readme_print_the_documented_output(
    tmp_path: Path, commands: Path, manifest: str, request: pytest.FixtureRequest
) -> None:
    (tmp_path / "manifests").mkdir()
    (tmp_path / "manifests/shop.yaml").write_text(manifest)
    whole = BEFORE + PAGE.read_text(encoding="utf-8").replace(NIGHT, OPENED + NIGHT) + AFTER
    ran = transcripts.rewrite(whole, transcripts.run(whole, tmp_path, commands, {"COLUMNS": "80"}))
    for hidden in (BEFORE, OPENED, AFTER):
        assert hidden in ran, ran
        ran = ran.replace(hidden, "")
    transcripts.compare(PAGE, ran, write=request.config.getoption("--rewrite"))
