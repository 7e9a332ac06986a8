"""One declarative file for each kind of resource, and nothing else: the listing is the registry."""
