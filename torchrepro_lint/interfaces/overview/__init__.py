"""The overview of a project: entry points against controls, findings, operations, and what was not analysed.

A control is one thing that a repeatable run needs, such as a seed or a flag. ``report`` renders the overview.

- ``survey`` of ``survey``: analyses projects and returns their ``Overview``.
- ``records``: the records of an overview; ``page_json`` writes them by the names of their fields.
- ``CONTROLS``, ``STATES``, ``lanes`` of ``controls``: the columns, their states, and the lanes of a drawn timeline.
"""
