"""The platform as a stand-in: every operation of the specification, on SQLite."""
