"""The operations of the contract as synchronous steps on a table of records.

An engine that can read and write within one atomic step of its own needs nothing but a table: the engine in
memory runs a step on the event loop, and SQLite in a transaction.
"""
