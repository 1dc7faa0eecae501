"""MariaDB as this tool runs it: its servers and its clusters by GTID."""
