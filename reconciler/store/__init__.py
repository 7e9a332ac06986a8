"""Durable memory beside the owner records: intents, receipts, bindings, runs, and the lock of a stack.

What the platform itself holds is never kept here. SQLAlchemy is imported only by whoever opens a store.
"""
