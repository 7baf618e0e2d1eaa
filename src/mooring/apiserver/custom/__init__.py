"""Custom resources: definitions that add rows at run time, and the schemas their objects are held to."""
