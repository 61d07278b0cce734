"""What a run did to every collective: records, analysis, exporter, reports, comparison.

Nothing here sends, schedules or decides anything: it reads plain arrays of the dataplane and data
frames of the caller, and it doesn't know labs, traces or drivers.
"""
