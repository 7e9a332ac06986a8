"""Opens a project: settings and manifests, the store, the account."""
