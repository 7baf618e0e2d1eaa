"""The foundation: clock, durations, errors, logging, documents, certificates. Imports no other package of Mooring."""
