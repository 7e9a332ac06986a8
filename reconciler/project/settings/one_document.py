"""Reads a settings file (project or environment): one YAML document that is a map."""

from __future__ import annotations

from typing import Final

from reconciler.languages.yaml import reader as yaml
from reconciler.languages.yaml.reader import Document
from reconciler.model.problem import Position, Problem, Rejected
from reconciler.model.value import Json
from reconciler.project.documents import phrases

MAX_BYTES: Final = 1024 * 1024


def read_map(text: bytes, file: str, remedy: str) -> Document | None:
    """Returns the document; None if the file is empty. Raises Rejected. `remedy`: for a document that is not a map."""
    reading = yaml.read(text, file)
    if reading.problems:
        raise Rejected(reading.problems)
    if (count := len(reading.documents)) > 1:
        start = Position(file, 1, 1)
        raise Rejected(
            [
                Problem(
                    f"expected one document, found {count}",
                    "remove what follows the second '---'",
                    "",
                    start,
                    code="several-documents",
                )
            ]
        )
    if not reading.documents or reading.documents[0].value is None:
        return None
    document = reading.documents[0]
    if not isinstance(document.value, dict):
        raise Rejected([report_not_a_map(document.value, file, remedy)])
    return document


def report_not_a_map(value: Json, file: str, remedy: str) -> Problem:
    text = f"expected a map, found {phrases.describe_found(value)}"
    return Problem(text, remedy, "", Position(file, 1, 1), code="wrong-type")
