"""The rules, pure: what a partition decides, and nothing that could touch the world."""
