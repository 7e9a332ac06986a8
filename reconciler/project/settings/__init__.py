"""The project file, environments, variables and defaults."""
