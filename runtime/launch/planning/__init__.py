"""The plan of a local deployment: ports, credentials, replicas and variables of each process."""
