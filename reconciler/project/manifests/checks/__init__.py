"""Checks between declarations: conflicts that no single manifest shows."""
