"""The rules by which a change is judged: those of its base, and those of the branch that makes it."""
