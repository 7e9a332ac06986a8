"""Rules of values: canonical forms, syntax of texts, traffic policies."""
