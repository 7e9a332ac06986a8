"""A plan as text, Markdown, graph, SARIF and annotations of code hosts."""
