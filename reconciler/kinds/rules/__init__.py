"""Rules for field values: canonical forms, syntax of texts, traffic policies."""
