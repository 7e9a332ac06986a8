"""The server of the sandbox: process, ASGI application, injected faults and request budget."""
