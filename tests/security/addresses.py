"""Addresses that try to lead the key elsewhere: pieces of spelling that some reader of addresses takes differently."""

from __future__ import annotations

import random
from collections.abc import Iterator

# {own} and {other} are host:port of the platform and of a stranger, {port} and {far} their ports alone.
TABLE = """
http://{other}/x
HTTP://{other}/x
//{other}/x
///{other}/x
////{other}/x
/\\{other}/x
\\\\{other}/x
/\t/{other}/x
/\n/{other}/x
https://{other}/x
https://{own}/x
http:{other}/x
http:/{other}/x
http:///{other}/x
http:\\\\{other}/x
http://{own}@{other}/x
http://{own}%40{other}/x
http://{own}:x@{other}/x
http://user@{own}@{other}/x
http://user:pass@{own}/x
http://@{other}/x
http://{other}\\@{own}/x
http://{other}#@{own}/x
http://{other}?@{own}/x
http://{other};@{own}/x
http://{other},{own}/x
http://{own}.{other}/x
http://{own}\\.{other}/x
http://{own}%2f@{other}/x
http://{own}%5c@{other}/x
http://{own}%00.{other}/x
http://{own} @{other}/x
http://{own}\t@{other}/x
http://{own}\r\nHost: {other}\r\n\r\n/x
http://localhost:{far}/x
http://LOCALHOST:{far}/x
http://127.0.0.1.:{far}/x
http://127.1:{far}/x
http://0x7f.1:{far}/x
http://0x7f000001:{far}/x
http://2130706433:{far}/x
http://017700000001:{far}/x
http://0177.0.0.1:{far}/x
http://127.0.0.1:0{far}/x
http://127.0.0.1:+{far}/x
http://127.0.0.1:{far}:{port}/x
http://127.0.0.1:{port}:{far}/x
http://127.0.0.1: {far}/x
http://127.0.0.1:99999/x
http://127.0.0.1:-1/x
http://127.0.0.1:/x
http://127.0.0.1/x
http://[::1]:{far}/x
http://[::ffff:127.0.0.1]:{far}/x
http://[::1%25lo]:{far}/x
http://[::1%lo]:{far}/x
http://[127.0.0.1]:{far}/x
http://[v1.x]:{far}/x
http://[::1/x
http://0.0.0.0:{far}/x
http://0:{far}/x
http://\uff11\uff12\uff17.0.0.1:{far}/x
http://127\u30020\u30020\u30021:{far}/x
http://127.0.0.1:\uff11\uff12/x
http://loc\u0430lhost:{far}/x
http://xn--loclhost-8nf:{far}/x
http://\u2488\u2488:{far}/x
http\u003a//{other}/x
\uff48ttp://{other}/x
ftp://{other}/x
ws://{other}/x
file:///etc/passwd
javascript:alert(1)
data:text/plain,x
unix:///tmp/x
http+unix://%2ftmp%2fx/
http://
http:
//
/
?limit=1
#
x
../x
./x
/../x
/./x
/a/../../x
/%2e%2e/x
/%2E%2e%2fx
/..%2f..%2fx
/%2f%2f{other}/x
/x@{other}
/x?next=http://{other}/
/x#http://{other}/
http://{own}/x#@{other}/
http://{own}/x?@{other}/
http://{own}?@{other}/
http://{own}#@{other}/
http://{own}//{other}/x
http://{own}/\\{other}/x
http://{own}/@{other}
http://{own}/../x
http://{own}
"""

_PIECES = [
    "http:",
    "https:",
    "HTTP:",
    "ftp:",
    "//",
    "/",
    "\\",
    ":",
    "?",
    "#",
    "@",
    ";",
    ",",
    "&",
    "=",
    ".",
    "..",
    "%2f",
    "%2F",
    "%5c",
    "%40",
    "%00",
    "%0d%0a",
    "%2e",
    "%252f",
    "%25",
    "[",
    "]",
    "[::1]",
    "localhost",
    "127.0.0.1",
    "127.1",
    "0x7f.1",
    "0",
    "user",
    "user:pass",
    "{own}",
    "{other}",
    "{port}",
    "{far}",
    "http://{own}",
    "http://{other}",
    "//{other}",
    "//{own}",
    "@{other}",
    "\\{other}",
    ":{far}",
    "0{far}",
    "x",
    "/x",
    "?limit=1",
    "#x",
]
_BLANKS = [
    "\t",
    "\n",
    "\r",
    " ",
    "\x00",
    "\x0b",
    "\x7f",
    "\x85",
    "\xa0",
    "\u2028",
    "\u200b",
    "\u3002",
    "\uff0f",
    "\uff20",
]


def generate(count: int, seed: int) -> Iterator[str]:
    """Spellings with `{own}` and the like in them: the table's, the table's bent, and new ones."""
    chance = random.Random(seed)
    table = [line for line in TABLE.strip("\n").split("\n") if line]
    # A few lines of the table hold the characters that lines end with: those come back together here.
    table += ["/\n/{other}/x", "/\r/{other}/x", "http://{own}\r\nHost: {other}\r\n\r\n/x", "http://{own}\n@{other}/x"]
    yield from table
    for _ in range(count - len(table)):
        spelt = (
            chance.choice(table) if chance.random() < 0.5 else "".join(chance.choices(_PIECES, k=chance.randint(1, 6)))
        )
        for _ in range(chance.randint(0, 3)):
            at = chance.randint(0, len(spelt))
            match chance.randint(0, 3):
                case 0:
                    spelt = spelt[:at] + chance.choice(_BLANKS) + spelt[at:]
                case 1:
                    spelt = spelt[:at] + chance.choice(_PIECES) + spelt[at:]
                case 2:
                    spelt = spelt[:at] + spelt[at:].swapcase() if "{" not in spelt[at:] else spelt
                case _:
                    spelt = spelt[:at] + spelt[at + 1 :]
        yield spelt


def fill_in(spelt: str, own: int, other: int) -> str:
    """With the ports of two listeners on 127.0.0.1."""
    for name, text in (("own", f"127.0.0.1:{own}"), ("other", f"127.0.0.1:{other}"), ("port", own), ("far", other)):
        spelt = spelt.replace(f"{{{name}}}", str(text))
    return spelt
