"""The domain: torch's questions about a program, as queries over names, values and traces.

- ``Program``, ``all_programs`` and ``programs_reaching`` of ``programs``: an entry point with its trace and effects.
- ``effects_in`` and ``state_effects`` of ``programs``: what functions and programs do to generators, flags and devices.
- ``has_backward`` of ``programs``: whether a program runs a backward pass.
- ``is_attributed_elsewhere`` of ``programs``: whether an event belongs to another entry point.
- ``timeline`` of ``timeline``: the trace of a program as labelled events, with diagnostics.
- ``sets_flag`` and ``flag_writes_in`` of ``determinism_mode``: which flags a program sets, and where.
- ``first_accelerator_computation`` of ``determinism_mode``: from when on a program computes on an accelerator.
- ``FlagWrite`` and ``StateEffect`` of ``flag_effects``: a write of a flag in a module; an effect of a trace event.
- ``FlagSetting`` and ``is_off`` of ``flags``: a flag with its value; whether it is certainly off.
"""
