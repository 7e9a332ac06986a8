"""The runs of fleets in a store: their tasks, shapes and pauses, and the requests that tasks have sent."""
