"""A project at a glance: entry points against controls, findings, operations, and what was not analysed."""
