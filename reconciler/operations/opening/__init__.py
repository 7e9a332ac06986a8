"""Opening a project, its store and its account."""
