"""The policies of a project (docs/policies.md): rules in CEL, and their evaluation over resources and plans."""
