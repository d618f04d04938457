"""Type inference: kind, dtype, shape, device, layout and gradient of values, by abstract interpretation.

- `type_inference` of `inference`: the inference of a project; `of(path, expression)` is an `AbstractValue`
- `AbstractValue`, `UNKNOWN`, `join`, `meet` of `lattice`: the lattice
- `SHAPES` of `shapes`, `FUNCTIONS` of `tensor_functions`: the rules that the table of tensor operations names
- `TensorFacts` of `tensor_facts`: what is known of a tensor, as yes-or-no questions
- `sparse_variables`, `sparse_carriers`, `makes_sparse`, `Variable` of `tensor_facts`: the variables that may be sparse
- `gradient_mode`, `is_device`, `has_device_context` of `context`: what a context manager or a decorator sets
- `instance_of`, `annotated` of `annotations`: the types of instances and annotations
"""
