"""The catalogue: what torch and other libraries do, release by release, as tables of rows with three-valued conditions.

- ``load``, ``Catalogue`` of ``catalogue``: the rows of one torch release by qualified name: operations, consumers, seeders, frameworks
- ``alternatives_for``, ``third_party_operations``, ``frameworks``, ``error_names``, ``signatures`` of ``catalogue``: tables for all releases
- ``canonical``, ``seeding_identifiers``, ``worker_seeding_identifiers`` of ``catalogue``: public names; identifiers that call seeders
- ``OperationRow``, ``Condition``, ``Signature``, ``Consumer``, ``Seeder``, ``FrameworkModel`` of ``rows``: the records of the tables
- ``FAMILIES``, ``CUBLAS_VARIABLE``, ``CUBLAS_VALUES`` of ``rows``: RNG families, cuBLAS workspaces
- ``argument_reader``, ``literal_value`` of ``conditions``: the argument binding of a call; the constant that an expression is
- ``evaluate``, ``applicable_rows``, ``refuted``, ``Truth`` of ``conditions``: whether conditions and rows hold for a call
- ``module_wrapper``, ``is_fluent`` of ``libraries``: the calls that return a module they were given
- ``tensor_operations``, ``TensorOperation`` of ``tensor_operations``: what torch's operations return, by their names
- ``described_packages`` of ``catalogue``: the packages that tables know
- ``loader_kinds``, ``loader_names``, ``dataset_model``, ``transform_models``, ``library_generators`` of ``libraries``: models of libraries
- ``parse_errors``, ``explain``, ``Explanation`` of ``errors``: torch's determinism errors in a text, and what they mean
- ``find_operations``, ``history``, ``histories`` of ``release_history``: operations by name, and their behaviour in each release
- ``conditions_text``, ``devices_text``, ``devices_and_phase``, ``release_ranges``, ``STATUSES`` of ``release_history``: rows in words
"""
