"""Pure functions from what is declared and what is live to a plan: no network, disk, clock, environment or chance."""
