"""The database of a project: intents, receipts, bindings, history, and the lock of a stack.

It holds no state of the platform. SQLAlchemy is imported only when a store is opened.
"""
