"""How long and how often a load should be measured."""
