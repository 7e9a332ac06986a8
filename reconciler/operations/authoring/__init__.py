"""Writes and reads files of a project: new projects, imports, snapshots, agent configurations; explains values."""
