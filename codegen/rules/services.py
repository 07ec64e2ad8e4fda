"""Rules of services.yaml."""
