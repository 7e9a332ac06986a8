"""A Chromium for tests of pages, driven by its own protocol over a pair of pipes. Independent of the pages."""

from __future__ import annotations

import base64
import fcntl
import json
import os
import select
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

PROGRAMS = ("chromium", "chromium-browser", "google-chrome", "chrome")
_JOIN = """
import os, sys
for end, number in zip(map(int, sys.argv[1:3]), (3, 4)):
    os.dup2(end, number)
    os.close(end)
os.execv(sys.argv[3], sys.argv[3:])
"""
_PATIENCE = 60  # seconds for one answer: the machine may be busy


def program() -> str | None:
    """The browser of this machine, if it has one."""
    return next((found for name in PROGRAMS if (found := shutil.which(name))), None)


class Browser:
    """One process with one page. Records the page's network requests and its errors."""

    def __init__(self, executable: str) -> None:
        self._home = tempfile.mkdtemp(prefix="reconciler-browser.")
        ours_in, theirs_out = os.pipe()
        theirs_in, ours_out = os.pipe()
        # Out of the way of 3 and 4, which the protocol's pipes are to be.
        high_in, high_out = (fcntl.fcntl(end, fcntl.F_DUPFD, 64) for end in (theirs_in, theirs_out))

        self._process = subprocess.Popen(
            [
                *(sys.executable, "-c", _JOIN, str(high_in), str(high_out)),
                executable,
                "--headless",
                "--no-sandbox",  # which does not work for root, as in containers; the pages are our own
                "--disable-gpu",
                "--disable-dev-shm-usage",
                "--disable-background-networking",
                "--no-first-run",
                "--hide-scrollbars",
                "--force-color-profile=srgb",
                f"--user-data-dir={self._home}",
                "--remote-debugging-pipe",
                "about:blank",
            ],
            pass_fds=(high_in, high_out),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        for end in (theirs_in, theirs_out, high_in, high_out):
            os.close(end)
        self._in, self._out = ours_in, ours_out
        self._buffer = b""
        self._number = 0
        self._session: str | None = None
        self.asked: list[str] = []
        self.complaints: list[str] = []
        target = self.send("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.send("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.send(f"{domain}.enable")

    def stop(self) -> None:
        self._process.kill()
        self._process.wait()
        os.close(self._in)
        os.close(self._out)
        shutil.rmtree(self._home, ignore_errors=True)

    # --- the page -------------------------------------------------------------------------------------------------

    def open(self, file: Path, *, width: int = 1280, height: int = 900, dark: bool = False) -> None:
        """The page, loaded, in a window of that size."""
        self.asked, self.complaints = [], []
        self.send(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 600
        )
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.send("Emulation.setEmulatedMedia", features=[scheme])
        self.send("Page.navigate", url=file.as_uri())
        self.until("document.readyState === 'complete' && location.protocol === 'file:'")

    def evaluate(self, script: str) -> Any:
        """The value of the expression, as JSON."""
        answer = self.send("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def until(self, condition: str) -> None:
        """Waits until the condition is true; its elements need not exist yet."""
        end = time.monotonic() + _PATIENCE
        while not self.evaluate(f"(() => {{ try {{ return Boolean({condition}) }} catch {{ return false }} }})()"):
            assert time.monotonic() < end, f"never came true: {condition}"

    def click(self, selector: str) -> None:
        """Clicks with the mouse, on the middle of the element."""
        quoted = json.dumps(selector)
        self.evaluate(f"document.querySelector({quoted}).scrollIntoView({{block: 'center', inline: 'center'}})")
        script = f"(() => {{ const r = document.querySelector({quoted}).getBoundingClientRect(); "
        place = self.evaluate(script + "return {x: r.x + r.width / 2, y: r.y + r.height / 2}; })()")
        for kind in ("mousePressed", "mouseReleased"):
            self.send("Input.dispatchMouseEvent", type=kind, button="left", clickCount=1, **place)

    def press(self, *keys: str) -> None:
        for key in keys:
            text = {"text": "\r"} if key == "Enter" else {"text": key} if len(key) == 1 else {}
            code = {"Enter": 13, "Tab": 9, "Escape": 27}.get(key, 0)
            known = {"key": key, "windowsVirtualKeyCode": code}
            self.send("Input.dispatchKeyEvent", type="keyDown", **known, **text)
            self.send("Input.dispatchKeyEvent", type="keyUp", **known)

    def write(self, text: str) -> None:
        self.send("Input.insertText", text=text)

    def screenshot(self, file: Path, *, whole: bool = False) -> None:
        """Of the window, or of the whole page."""
        shot = self.send("Page.captureScreenshot", format="png", captureBeyondViewport=whole)
        file.write_bytes(base64.b64decode(shot["data"]))

    # --- the protocol ---------------------------------------------------------------------------------------------

    def send(self, method: str, **parameters: Any) -> Any:
        self._number += 1
        call = {"id": self._number, "method": method, "params": parameters}
        if self._session:
            call["sessionId"] = self._session
        os.write(self._out, json.dumps(call).encode() + b"\0")
        while True:
            message = self._receive()
            if message.get("id") == self._number:
                assert "error" not in message, f"{method}: {message['error']}"
                return message["result"]
            self._record_event(message)

    def _receive(self) -> Any:
        end = time.monotonic() + _PATIENCE
        while b"\0" not in self._buffer:
            ready, _, _ = select.select([self._in], [], [], max(0.0, end - time.monotonic()))
            assert ready, "the browser does not answer"
            piece = os.read(self._in, 1 << 20)
            assert piece, "the browser is gone"
            self._buffer += piece
        message, _, self._buffer = self._buffer.partition(b"\0")
        return json.loads(message)

    def _record_event(self, message: Any) -> None:
        kinds: dict[str, Callable[[Any], None]] = {
            "Network.requestWillBeSent": lambda parameters: self.asked.append(parameters["request"]["url"]),
            "Runtime.exceptionThrown": lambda parameters: self.complaints.append(str(parameters["exceptionDetails"])),
            "Log.entryAdded": lambda parameters: self.complaints.append(parameters["entry"]["text"]),
        }
        if record := kinds.get(message.get("method", "")):
            record(message["params"])
