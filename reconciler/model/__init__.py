"""The nouns: frozen values that every other package speaks in. No input, no output, no clock, no chance."""
