"""Pages of the documentation that repeat what the code knows; made by each build, and never checked in."""
