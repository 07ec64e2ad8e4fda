"""Rules of environment.yaml."""
