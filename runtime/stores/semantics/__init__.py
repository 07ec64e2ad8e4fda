"""The executable meaning of a lifecycle: pure functions over its rules, a record, variables and a moment.

Nothing here reads or writes a store, and nothing knows an engine. A moment is a number of microseconds since
the epoch; `Rules` converts it to what a field of the record has.
"""
