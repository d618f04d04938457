"""Data flow: which values expressions have, where they go, and on which paths.

- `ValueFlow` of `value_flow`: a project with its value sources and def-use; `is_device`, `gradient_mode`: what a context manager sets
- `ValueSourceAnalysis` of `value_sources`: which displays, calls and constants an expression stands for
- `Closure`, `Environment`, `BoundArguments` of `environment`: an expression with the arguments under which it is evaluated
- `bind_arguments`, `read_arguments`, `argument_values` of `arguments`: argument binding
- `alternative_arguments`, `with_forwarded_arguments` of `forwarding`: the argument environments that a call may have
- `reaching_definitions` of `reaching_definitions`: the definitions and updates that a use may see
- `DefUse` of `uses`: the reads that a value reaches
- `infeasible_ranges`, `implies_not_none`, `implies_falsy` of `feasibility`: what does not run, and what a path condition implies
- `propagated_constant`, `value_by_default`, `describe` of `constants`: constant propagation
- `types`: type inference; `taint`: taint analysis of arbitrary orders
"""
