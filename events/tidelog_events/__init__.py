"""The language of Tidelog: names, states, commands, transitions, replies, and how they are written down."""
