"""From figures to scores: formulas, prices, given figures; pure."""
