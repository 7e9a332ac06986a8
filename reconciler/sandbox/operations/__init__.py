"""What each operation of the emulated API does to objects."""
