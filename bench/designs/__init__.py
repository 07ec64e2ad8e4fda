"""The designs of a system under the same load: measured in turns, compared only where that is fair."""
