"""What the `fleet` commands share: options, the opened fleet, a run at the terminal, and its output."""
