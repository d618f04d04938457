"""Type inference: kind, dtype, shape, device, layout and gradient of values, by abstract interpretation.

- `type_inference` of `inference`: the inference of a project; `of(path, expression)` is an `AbstractValue`
- `AbstractValue`, `join`, `meet` of `lattice`: the lattice
- `TensorFacts`, `sparse_variables` of `tensors`: what is known of a tensor, as yes-or-no questions
- `instance_of`, `annotated` of `annotations`: the types of instances and annotations
"""
