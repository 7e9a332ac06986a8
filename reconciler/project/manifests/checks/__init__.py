"""Checks between declarations: what no single manifest shows."""
