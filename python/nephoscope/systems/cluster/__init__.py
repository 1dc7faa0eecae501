"""What every product's cluster has: a front, an autoscaler."""
