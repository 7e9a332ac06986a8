"""Suggestions for a misspelled word."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

_FEW = 1000
_LONGEST_WORD = 200
_FOLDED = 0.75  # similarity from which words that differ in case, too, are close


def did_you_mean(word: str, candidates: Iterable[str]) -> str:
    """`did you mean X?`, or an empty text when nothing is close."""
    close = closest(word, candidates)
    return f"did you mean {close}?" if close else ""


def with_suggestion(what: str, word: str, candidates: Iterable[str]) -> dict[str, str]:
    """Values of a problem about an unknown word, such as `{"field": "hostprots", "suggestion": "hostports"}`."""
    close = closest(word, candidates)
    return {what: word, "suggestion": close} if close else {what: word}


def closest(word: str, candidates: Iterable[str]) -> str:
    """The candidate that is most similar to the word; empty if none is close."""
    known = tuple(candidates)
    if len(known) > _FEW or len(word) > _LONGEST_WORD:
        return ""  # comparing is slow, and there may be as many misspelled words
    return _find_closest(word, known)


@lru_cache(maxsize=256)  # the instances of a template, or resources written alike, have the same word
def _find_closest(word: str, candidates: tuple[str, ...]) -> str:
    import difflib  # deferred: most commands find no misspelled word

    if close := difflib.get_close_matches(word, sorted(candidates), n=1):
        return close[0]
    by_folded = {candidate.lower(): candidate for candidate in sorted(candidates)}
    close = difflib.get_close_matches(word.lower(), list(by_folded), n=1, cutoff=_FOLDED)
    return by_folded[close[0]] if close else ""
