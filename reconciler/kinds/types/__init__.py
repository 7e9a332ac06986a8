"""Annotated types of fields and modules that several kinds share."""
