"""Redaction of secrets in text of other programs, in every encoding that they use."""

from __future__ import annotations

import base64
import html
import json
from itertools import zip_longest
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.model.redaction import Redactor, redact

SECRET = 'aB3$<&"Q9zXw7\nLmN0pRsTuVqq'


@pytest.mark.parametrize(
    "quoted",
    [SECRET, json.dumps(SECRET)[1:-1], quote(SECRET), html.escape(SECRET), SECRET.encode().hex()],
)
def test_a_quoted_secret_is_redacted_in_every_encoding(quoted: str) -> None:
    assert redact(f"the value {quoted} is wrong", [SECRET]) == "the value (secret) is wrong"


WORDS = 'top "secret" \\ für/uns'  # without random parts


@pytest.mark.parametrize(
    "quoted",
    [
        json.dumps(json.dumps(WORDS))[3:-3],
        json.dumps(json.dumps(WORDS, ensure_ascii=False), ensure_ascii=False)[3:-3],
        repr(WORDS)[1:-1],
        repr(WORDS.encode())[2:-1],
        quote(WORDS).replace("%C3%BC", "%c3%bc").replace("%5C", "%5c"),
    ],
)
def test_a_secret_of_words_is_redacted_in_every_encoding(quoted: str) -> None:
    assert redact(f"the value {quoted} is wrong", [WORDS]) == "the value (secret) is wrong"


@pytest.mark.parametrize("secret", ["correct horse battery staple", "p@ssword-of-mine", "x" * 30])
@pytest.mark.parametrize("text", ["Bearer{}", "{}is wrong", "a{}b", "{0}{0}", "7{}9"])
def test_a_long_secret_is_redacted_within_a_longer_word(secret: str, text: str) -> None:
    assert secret not in redact(text.format(secret), [secret])


@pytest.mark.parametrize("before", range(3))
def test_a_secret_in_base64_is_redacted_at_every_alignment(before: int) -> None:
    coded = base64.b64encode(b"x" * before + SECRET.encode()).decode()
    redacted = redact(f"got {coded}", [SECRET])
    assert "(secret)" in redacted
    assert len(redacted.replace("(secret)", "")) < len("got ") + 8


def test_a_part_of_eight_random_characters_is_redacted_and_one_of_seven_is_not() -> None:
    assert redact("so LmN0pRsT is", [SECRET]) == "so (secret) is"
    assert redact("so LmN0pRs is", [SECRET]) == "so LmN0pRs is"


def test_a_secret_that_is_wrapped_onto_other_lines_is_redacted() -> None:
    assert redact('a aB3$<&"Q9z Xw7 LmN0p\n RsTuVqq b', [SECRET]) == "a (secret) b"


@pytest.mark.parametrize(
    ("secret", "text"),
    [
        ("http://127.0.0.1:80", "cannot reach http://127.0.0.1:809"),
        ("http://127.0.0.1:8080", "cannot reach http://127.0.0.1:80"),
        ("abc", "ab abcd xabc abc1 a b c"),
        ("production", "reproductions"),
        ("correct horse battery staple", "a correct horse"),
        ("https://hooks.example.com/services/T0/B0/x", "services of example.com"),
        ("5439", "port 54390 of 254391"),
    ],
)
def test_words_that_overlap_with_a_secret_by_chance_are_not_redacted(secret: str, text: str) -> None:
    assert redact(text, [secret]) == text


@pytest.mark.parametrize(
    "text",
    [
        "%",
        "the value '%' is wrong",
        "user:%@host",
        "?key=%&a=b",
        "token_%_x",
        '{"value":"%"}',
        "a%20%%22",
        "first\\n%\\nlast",
        "\\u003c%\\u003e",
        "&quot;%&quot;",
        "wrapped %\n",
    ],
)
@pytest.mark.parametrize("secret", ["pw", "hunter2", "http://127.0.0.1:80", "correct horse battery staple", SECRET])
def test_a_whole_secret_is_redacted_in_any_context(secret: str, text: str) -> None:
    before, _, after = text.partition("%") if text.count("%") == 1 else ("a%20", "", "%22")
    redacted = redact(f"{before}{secret}{after}", [secret])
    assert secret not in redacted
    assert "(secret)" in redacted


@pytest.mark.parametrize("mark", ["…", "...", " …"])
@pytest.mark.parametrize("secret", ["correct horse battery staple", "https://hooks.example.com/services/T0"])
def test_a_truncated_secret_is_redacted(secret: str, mark: str) -> None:
    assert redact(f"refused: {secret[:-3]}{mark}", [secret]) == f"refused: (secret){mark}"


def test_a_random_secret_is_redacted_within_a_longer_word() -> None:
    assert redact("xQ9zXw7LmN0pRsTuVqqx", ["Q9zXw7LmN0pRsTuVqq"]) == "x(secret)x"


@given(
    st.text(st.sampled_from("ab19:/. -"), min_size=1, max_size=12), st.text(st.sampled_from("ab19:/. -"), max_size=30)
)
def test_only_text_that_begins_like_the_secret_is_redacted(secret: str, text: str) -> None:
    redacted = redact(text, [secret])
    if redacted != text:
        assert secret.strip()[:1] in text
        start = next(at for at, (old, new) in enumerate(zip_longest(text, redacted)) if old != new)
        assert "".join(text[start:].split()).startswith("".join(secret.split())[:8])
    if secret.strip() == secret and f" {secret} " in f" {text} ":
        assert f" {secret} " not in f" {redacted} "


def test_a_text_without_secrets_is_unchanged() -> None:
    assert redact("all  is\nwell", [SECRET]) == "all  is\nwell"


def test_a_redactor_accepts_further_secrets() -> None:
    veil = Redactor([])
    assert veil.redact("the token tok-123456789") == "the token tok-123456789"
    veil.add("tok-123456789")
    assert veil.redact("the token tok-123456789") == "the token (secret)"
