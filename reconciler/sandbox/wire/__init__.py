"""Requests and responses of the emulated API: parsing, queries, filters, bodies, errors, OpenAPI document."""
