"""The objects of the emulated account: database, ids, seeds, derived fields."""
