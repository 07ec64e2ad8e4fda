"""Rules of system.yaml."""
