"""Taint analysis of arbitrary orders: sources, propagation, sanitisers and sinks.

- `TaintFlow`, `TaintAnalysis` of `analysis`: the first sink that a tainted value reaches
- `describe_sink` of `sinks`: what the order decides there, in words
- `TaintedValue`, `Sink`, `OrderObservation` of `context`: what is followed, what it ends in, what iterates it
- `listings`, `Listing`, `completions`, `set_orders` of `sources`: the taint sources of a file
- `elements_are_numbers`, `has_stable_hash` of `numeric_sets`: which sets have the same order in every run
- `integer_hash`, `has_repeated_hash` of `stable_hashes`: objects of which classes have the same hash in every run
- `LISTING`, `COMPLETION` of `transfer`: the taint that a source starts with; `argument_effect`: what a call does to it
"""
