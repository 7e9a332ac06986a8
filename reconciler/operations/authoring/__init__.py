"""Files of a project: written for it, or drawn from what it declares."""
