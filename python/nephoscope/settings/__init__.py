"""What any user's table is made of: types, units, checks, variables."""
