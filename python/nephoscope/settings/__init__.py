"""The building blocks of a user's tables: types, units, checks, variables."""
