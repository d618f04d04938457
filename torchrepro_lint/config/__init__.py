"""The configuration: what the user and the project's own files say of settings, files, rules and the target torch release.

- ``Settings``, ``Selection``, ``RuleOverrides``, ``settings_table`` of ``settings``: validated settings, layers of rule selection
- ``did_you_mean``, ``one_of``, ``string_list``, ``boolean``, ``parse_torch_version`` of ``settings``: validators of values
- ``RootFinder``, ``ProjectRoot``, ``ConfigOptions``, ``config_options``, ``fallback_root`` of ``roots``: the root and settings of a directory
- ``UnionFind`` of ``roots``: groups of files and folders that belong together
- ``why_never_whole`` of ``roots``: directories that are no project, such as the home directory
- ``plan``, ``Plan``, ``ProjectTree``, ``GivenFile`` of ``discovery``: the files to lint, by project
- ``Exclusion``, ``glob_matcher``, ``relative_path``, ``source_roots`` of ``discovery``: exclusion, globs, and the import search path
- ``target_of``, ``target_here``, ``substitution_warning`` of ``target``: the target torch release
- ``console_scripts``, ``project_name``, ``required_libraries`` of ``target``: what a project declares
"""
