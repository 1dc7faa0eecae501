"""Metastable failures: a trigger under each retry policy, and whether goodput returns when it is over."""
