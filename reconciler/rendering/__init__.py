"""Pure functions from plans, kinds and events to text that people and programs read."""
