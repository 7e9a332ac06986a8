"""The sandbox, a local emulator of the platform: every operation of the specification, on SQLite."""
