"""Requests and responses of the emulated API: parsing, filters, bodies, refusals, OpenAPI."""
