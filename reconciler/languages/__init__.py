"""YAML scalars, CEL expressions and names of traffic policies: texts that stand within other texts."""
