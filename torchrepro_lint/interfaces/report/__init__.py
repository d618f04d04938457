"""Output formats: one module with ``render`` for each format of diagnostics, and the output of ``report``, ``ops``, ``trace``.

- ``renderer`` of ``formats``: the ``render`` of a format by its name.
- ``View``, ``base_directory`` of ``view``: options of a format, and the directory that its paths are relative to.
- ``excerpt``, ``changes`` of ``excerpt``: source lines of a diagnostic, and its fix as a diff.
- ``paint`` of ``colours``: colours for a terminal, one for each severity.
- ``fingerprints`` of ``fingerprints``: stable identifiers of diagnostics.
- ``render`` of ``page_html``, ``page_markdown``, ``page_json``: an overview; of ``timeline_text``, ``timeline_json``: a trace;
  of ``ops_table``, ``ops_markdown``, ``ops_html``, ``ops_json``: the catalogue; of ``explanation``: an error of torch.
- ``Writer``, ``verdict``, ``causes`` of ``page_content``: what the page of an overview says, in HTML and in Markdown; ``read``,
  ``compare`` of ``page_comparison``: the difference to an older report.
- ``render`` of ``survey_html``, ``survey_tables``: a survey; ``SurveyTables``, ``compared`` of ``survey_queries``: what they say.
- ``render``, ``by_rule``, ``by_severity`` of ``summary``; ``render`` of ``statistics``, ``diff``; ``files``, ``settings`` of ``show``: other
  output of ``check``.
"""
