"""`tidelog doctor`: looks at an installation, and says what is wrong and what to do. It changes nothing."""
