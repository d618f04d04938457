"""The domain: torch's questions about a program, as queries over names, values and traces.

- ``Project`` and ``Context`` of ``project``: the facade that rules query, and the module under check.
- ``Program`` and ``ProgramEffects`` of ``program_effects``: an entry point with its trace and effects; the entry points and traces of
  a project, and what programs and functions do to generators, flags and devices.
- ``has_backward`` of ``program_effects``: whether a program runs a backward pass.
- ``is_attributed_elsewhere`` of ``program_effects``: whether an event belongs to another entry point.
- ``timeline`` of ``timeline``: the trace of a program as labelled events, with diagnostics.
- ``sets_flag`` and ``flag_writes_in`` of ``determinism_mode``: which flags a program sets, and where.
- ``first_accelerator_computation`` of ``determinism_mode``: from when on a program computes on an accelerator.
- ``FlagWrite`` and ``StateEffect`` of ``flag_effects``: a write of a flag in a module; an effect of a trace event.
- ``FlagSetting`` and ``is_off`` of ``flags``: a flag with its value; whether it is certainly off.
- ``scripted_functions`` of ``scripted``: what TorchScript compiles.
"""
