"""The platform over HTTP: authentication, pages, limits and failures."""
