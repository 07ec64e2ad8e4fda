"""Rules of lifecycle.yaml about states, transitions, leases and what the clock drives."""
