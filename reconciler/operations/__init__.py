"""The use cases of the command line and the Python API: plan, apply, drift, import. Without output or prompts."""
