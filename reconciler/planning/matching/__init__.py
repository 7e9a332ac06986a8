"""Assigns live objects to declarations: by id, owner record, binding, former address or natural key."""
