"""Reports of benchmarks: tables, pictures and one self-contained page."""
