"""Rules of metrics.yaml."""
