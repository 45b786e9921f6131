"""Helpers for all subpackages: checks, memory sizes, threads, files, status and progress."""
