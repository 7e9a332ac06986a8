"""Fixtures of the tests of examples."""

from tests.examples.repository import clone, forge

__all__ = ["clone", "forge"]
