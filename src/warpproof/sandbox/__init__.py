"""Seccomp filters proved equal to their policy for all system calls, and what a confined process can reach."""
