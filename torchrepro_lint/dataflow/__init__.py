"""Data flow: which values expressions have, where they go, and on which paths.

- `ValueFlow` of `value_sources`: a project with its value sources and def-use
- `ValueSourceAnalysis` of `value_sources`: which displays, calls and constants an expression stands for; `ValueSources` of
  `environment`: its protocol
- `Closure`, `Environment`, `BoundArguments` of `environment`: an expression with the arguments under which it is evaluated
- `ContextInsensitivity`, `context_insensitive_key` of `environment`: which environments mean the same
- `bind_arguments`, `read_arguments`, `is_partial` of `arguments`: argument binding
- `argument_values`, `argument_constants`, `passes_value` of `environment`: what an argument may be
- `alternative_arguments`, `with_forwarded_arguments` of `alternative_arguments`: the argument environments that a call may have
- `reaching_definitions`, `attribute_values` of `reaching_definitions`: the definitions and updates that a use may see; `DefinitionFlow`:
  which statements of a body reach a place in it
- `DefUse` of `uses`: the reads that a value reaches
- `evaluate_test`, `ruling_tests`, `implies_not_none`, `implies_falsy` of `feasibility`: what a test gives, which tests keep a place from
  running, and what a path condition implies;
  `is_set_from_outside`: whether an attribute is assigned by code other than its class
- `propagated_constant`, `DefaultValue` of `constants`: constant propagation; `describe`, `display_name`: short text; `DefaultValues` of
  `default_values`: the values of a run without options
- `is_backward`, `CallEffects` of `training_steps`: what a call trains, draws and seeds
- `types`: type inference; `taint`: taint analysis of arbitrary orders
"""
