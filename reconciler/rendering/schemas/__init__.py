"""JSON Schemas of manifests, project files and policies."""
