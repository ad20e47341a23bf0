"""Looking at an installation from outside: which workers are there, how far readers are, all of one job."""
