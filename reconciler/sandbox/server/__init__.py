"""The sandbox's process, ASGI application and injected faults."""
