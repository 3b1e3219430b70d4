"""Readers of traces that know one block of a file at a time, and what runs them.

``large`` cuts a file into parts and reads each in a process of its own; ``perf``
reads ``perf script``, ``events`` reads ftrace. They stand apart from the loaders, so
that such a process imports these modules only.
"""
