"""The emulated account's objects: database, ids, seed files, derived fields."""
