"""The emulated agent: its process, local API and tunnels."""
