"""The operations of the emulated API: their table, their effect on objects, and the events they cause."""
