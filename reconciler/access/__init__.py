"""Effective access: who can reach what through an account, and what a change of the account opens or closes. Pure."""
