"""Use cases: what the command line and the Python API do with a project. They print nothing and ask nothing."""
