"""Timings whose history asv keeps."""
