"""Reference pages of kinds, as Markdown and at a terminal."""
