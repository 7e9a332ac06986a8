"""Live objects as declarations."""
