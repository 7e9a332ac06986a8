"""Fields of kinds: the annotations of kind files, base classes of specs, and the compiled form `Field`."""
