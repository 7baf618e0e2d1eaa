"""What a running scheduler shows of itself: last decisions, `mooring explain`, cache comparison, foreign bindings."""
