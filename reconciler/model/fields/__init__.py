"""Fields of a kind: what a kind file says of them, and their compiled form."""
