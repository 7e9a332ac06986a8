"""A run over a fleet as text, Markdown, JSON, JUnit XML and HTML."""
