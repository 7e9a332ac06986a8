"""One-time secrets on this machine: sinks, files, dotenv entries."""
