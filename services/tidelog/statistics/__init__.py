"""Rolling statistics of queues and wire names, minute by minute, by a Faust app (`tidelog stats`)."""
