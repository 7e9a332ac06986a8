"""HTML pages of plans and reports."""
