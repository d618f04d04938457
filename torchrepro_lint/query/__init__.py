"""The incremental query engine in salsa's terms: memo tables, dependencies, revisions, early cutoff, cycles, fixpoints, LRU eviction.

- ``DependencyTracker`` of ``memo_tables``: which files and words the query that is running has read
- ``query``, ``Database`` of ``database``: a function whose answers are remembered, and where; LRU eviction, early cutoff, durability
- ``MemoTable`` of ``memo_tables``: answers by key, each with its dependencies
- ``DependencyIndex`` of ``memo_tables``: keys by their dependencies, so that a change finds what it invalidates
- ``Answer``, ``AnswerTable``, ``VerifiedTable`` of ``early_cutoff``: answers that hold after a change if what they asked for comes out
  the same
- ``LruTable`` of ``memo_tables``: bounded tables without dependencies
- ``ProvisionalTrail`` of ``fixpoint``: answers that last while the query is open at which a cycle was broken
- ``interned_names``, ``known_names``, ``clear_interned`` of ``memo_tables``: compact memory
- ``TablingSolver`` of ``tabling``: recursive set equations, with cycles
- ``FixpointSolver`` of ``fixpoint``: recursive equations over a lattice
"""
