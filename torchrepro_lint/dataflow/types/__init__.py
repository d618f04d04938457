"""Type inference: kind, dtype, shape, device, layout and gradient of values, by abstract interpretation.

- `type_inference` of `inference`: the inference of a project; `of(path, expression)` is an `AbstractValue`
- `AbstractValue`, `UNKNOWN`, `join`, `meet` of `lattice`: the lattice
- `TensorFacts` of `tensors`: what is known of a tensor, as yes-or-no questions
- `sparse_variables`, `sparse_carriers`, `makes_sparse`, `Variable` of `tensors`: the variables that may be sparse
- `instance_of`, `annotated` of `annotations`: the types of instances and annotations
"""
