"""Rules of lifecycle.yaml about states, transitions, leases and due transitions."""
