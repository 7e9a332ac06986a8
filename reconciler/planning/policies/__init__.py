"""The project's own policies: rules, and their evaluation over plans."""
