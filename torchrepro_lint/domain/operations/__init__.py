"""Operations: which catalogued operations of torch a program calls, and which rule reports each.

- ``cases`` of ``cases``: the rows of the catalogue that hold, or may hold, for each call of a module.
- ``verdicts`` of ``verdicts``: the rule that reports a call, at most one for each.
- ``mode_switches`` of ``verdicts``: the calls that switch deterministic mode.
- ``operations_needing_mode`` and ``operations_raising`` of ``reached_operations``: the same for a trace.
- ``gaps_to_loss`` and ``first_gap`` of ``gaps``: what a program trains that is not followed.
- ``gaps_of_program`` and ``gaps_of_run`` of ``program_gaps``: the calls that lead a program into code that is not followed.
- ``CalleeOrigins`` of ``callee_origins``: where a callee comes from that has no name.
- ``why_not_strict`` and ``why_not_strict_in`` of ``reached_operations``: what speaks against turning strict mode on.
- ``has_distinct_indices`` of ``distinct_indices`` and ``is_order_free`` of ``order_free``: whether the order makes no difference.
- ``tensor_argument`` and ``uses_component`` of ``condition_variables``: a call's arguments, and the use of its result.
"""
