"""Taint analysis of arbitrary orders: sources, propagation, sanitisers and sinks.

- `TaintFlow`, `TaintAnalysis` of `analysis`: the first sink that a tainted value reaches; `describe_sink`: that sink in words
- `TaintedValue`, `Sink` of `context`: what is followed, and what it ends in
- `listings`, `completions`, `set_orders` of `sources`: the taint sources of a file
- `LISTING`, `COMPLETION` of `transfer`: the kinds of taint that a source starts with
"""
