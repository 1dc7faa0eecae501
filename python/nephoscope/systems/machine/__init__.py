"""What this machine lends: accounts, folders, processes, control groups."""
