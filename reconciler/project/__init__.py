"""The project on disk: `reconciler.yaml`, manifests with positions, and values drawn from files and environment."""
