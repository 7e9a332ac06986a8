"""The data types of the domain, which every other package uses: immutable, without I/O, clock and randomness."""
