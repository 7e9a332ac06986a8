"""Plans, snapshots and events as JSON."""
