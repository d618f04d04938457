"""Random number generators: what a trace draws from and seeds, and with which seeds.

- ``RngEffects``, ``Draw`` and ``Seed`` of ``effects``: the RNG effect summary of a trace.
- ``Consumers`` of ``consumers``: whether a call draws, by the catalogue's rows.
- ``first_feasible_draw`` of ``feasibility``: the first draw that some call path reaches.
- ``shipped_seeds`` of ``optional_seeds``: which seeders a run without options leaves out.
- ``partly_seeded_functions`` and ``seeding_functions`` of ``seeding``: functions that seed; functions that seed some generators and draw from others.
- ``passed_seed`` and ``nondeterministic_source`` of ``seeders``: the seed of a call; what makes it change between runs.
- ``only_identifies`` of ``identifiers``: whether a drawn number only becomes a port, a name or another identifier.
"""
