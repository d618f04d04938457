"""The incremental query engine in salsa's terms: memo tables, dependencies, revisions, early cutoff, cycles, fixpoints, LRU eviction.

- ``query``, ``Database`` of ``database``: a function whose answers are remembered, and where; LRU eviction, early cutoff, durability
- ``SetEquations`` of ``tabling``, ``Lattice`` of ``cycles``: the policies of queries that may lead back to themselves
- ``DependencyTracker`` of ``memo_tables``: which files and words the query that is running has read
- ``MemoTable`` of ``memo_tables``: answers by key, each with its dependencies
- ``Answer``, ``VerifiedTable`` of ``early_cutoff``: answers that hold after a change if what they asked for comes out the same
- ``DependencyIndex`` of ``memo_tables``: keys by their dependencies, so that a change finds what it invalidates
- ``CycleSolver``, ``ProvisionalTrail`` of ``cycles``: answers that last while the query is open at which a cycle was broken
- ``TablingSolver`` of ``tabling``, ``FixpointSolver`` of ``cycles``: the algorithms for cycles
- ``LruTable`` of ``memo_tables``: a bounded table without dependencies
"""
