"""Dashboards for Grafana as JSON: import `run.json` and choose the Prometheus data source."""
