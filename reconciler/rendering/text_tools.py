"""Numbers, times and durations as text."""

from __future__ import annotations

from datetime import UTC, datetime


def count(number: int, noun: str, plural: str = "") -> str:
    """`1 file`, `2 files`"""
    return f"{number} {noun if number == 1 else plural or f'{noun}s'}"


def count_omitted(number: int, noun: str) -> str:
    """`… and 1 more row; --format json lists all of them`: what ends a list that was cut."""
    return f"… and {count_more(number, noun)}; --format json lists all of them"


def count_more(number: int, noun: str) -> str:
    """`1 more row`, `1,200 more rows`"""
    return f"{number:,} more {noun if number == 1 else f'{noun}s'}"


def format_time(moment: float) -> str:
    """`2026-11-23 10:15 UTC`, from seconds since 1970."""
    return datetime.fromtimestamp(moment, UTC).strftime("%Y-%m-%d %H:%M UTC")


def format_duration(seconds: float) -> str:
    """`3 days`, `5 hours`, `12 minutes`: the greatest unit."""
    for unit, noun in ((86400, "day"), (3600, "hour"), (60, "minute"), (1, "second")):
        if seconds >= unit:
            return count(int(seconds // unit), noun)
    return "less than a second"


def format_seconds(seconds: float) -> str:
    """`42 s`, `12 min`, `3 h 20 min`, `2 d 4 h`: at most two units."""
    if seconds < 100:
        return f"{max(1, round(seconds)) if seconds > 0 else 0} s"
    minutes = round(seconds / 60)
    if minutes < 100:
        return f"{minutes} min"
    hours, minutes = divmod(minutes, 60)
    if hours < 48:
        return f"{hours} h {minutes} min" if minutes else f"{hours} h"
    days, hours = divmod(hours, 24)
    return f"{days} d {hours} h" if hours else f"{days} d"
