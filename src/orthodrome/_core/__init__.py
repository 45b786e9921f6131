"""What every room needs and none of them owns: checks, budgets, threads, results, progress."""
