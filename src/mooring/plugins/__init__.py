"""The plugins that come with Mooring: one plugin a file, nothing but scheduling rules."""
