"""The search for tokens in the output of the whole suite finds each token and nothing else."""

from __future__ import annotations

import base64
import subprocess
import sys
from pathlib import Path

import pytest

from reconciler.sandbox.base.ids import token
from tests.harness.silence import secrets_in

TOKEN = token("cr_2NRkVKTkDKAsJSWVGHEqBHVjPXS")


@pytest.mark.parametrize("before", range(3))
def test_a_token_is_found_as_text_and_in_base64(before: int) -> None:
    coded = base64.b64encode(b"x" * before + b" " + TOKEN.encode() + b" tail").decode()
    assert secrets_in(f"so {TOKEN} it is") == [TOKEN]
    assert TOKEN in secrets_in(f"so {coded} it is")


def test_ids_and_digests_are_no_secrets() -> None:
    text = f"ipp_2NRkVKTkDKAsJSWVGHEqBHVjPXS {'0123456789abcdef' * 8} edghtsrt_2NRkVKTkDKAsJSWVGHEqBHVjPXS"
    assert secrets_in(text) == []


def test_an_interrupt_ends_the_suite_without_an_internal_error(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text("def test_it(tmp_path):\n    raise KeyboardInterrupt\n")
    words = [
        "-q",
        "-p",
        "tests.harness.silence",
        "-c",
        "/dev/null",
        "--rootdir",
        str(tmp_path),
        str(tmp_path / "test_it.py"),
    ]
    ran = subprocess.run([sys.executable, "-m", "pytest", *words], capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stderr) == (2, "")
    assert "test_it.py:2: KeyboardInterrupt" in ran.stdout
