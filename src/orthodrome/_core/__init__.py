"""Helpers of all rooms: checks, memory sizes, threads, files, status and progress."""
