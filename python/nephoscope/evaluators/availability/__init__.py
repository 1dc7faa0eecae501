"""Availability: failures and repairs on a schedule, yield, harvest, MTTF and MTTR."""
