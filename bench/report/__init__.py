"""What a reader sees of a benchmark: a table, pictures and one page that needs nothing else."""
