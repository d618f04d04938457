"""DataLoaders: where they are constructed, and what their workers draw from.

- ``Loader`` and ``loaders`` of ``constructions``: the loaders of a module, one for each calling context.
- ``fetch_effects`` of ``fetch_effects``: the generators that workers draw from.
- ``CallableEffects`` of ``callable_effects``: the same for transforms and collate functions.
- ``splits_without_generator`` of ``constructions``: random splits and samplers that draw from the global generator.
- ``worker_function_names`` and ``worker_seeds`` of ``workers``: what is passed as ``worker_init_fn``, and its bad seeds.
- ``is_dead`` of ``liveness``: whether a run takes no samples from a loader.
"""
