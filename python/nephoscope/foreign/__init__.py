"""Workloads that files of other tools describe: each tool has a file, which turns its input into a workload of ours."""
