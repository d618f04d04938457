"""Gradients: whether a call's result, a function or a module gets one.

- ``is_gradient_dead`` of ``liveness``: whether no gradient flows back to a call's result.
- ``called_without_gradient`` of ``liveness``: whether all calls of a function are in no-grad mode.
- ``entered_without_gradient`` of ``frozen``: the same within one trace.
- ``call_without_gradient`` of ``liveness``: whether a call stands in no-grad mode or has a detached input.
- ``in_evaluation_mode`` of ``modes``: whether a call runs only when the network is not in training mode.
- ``frozen_calls`` of ``frozen``: whether a module's parameters get no gradient, and where it runs.
- ``receives_gradient`` of ``liveness``: whether what a call passes may need a gradient.
"""
