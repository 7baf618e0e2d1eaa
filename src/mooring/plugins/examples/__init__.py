"""Small plugins to read, to use by name and to start one's own from."""
