"""GPU sharing and fragmentation: the evaluation of the FGD paper (USENIX ATC'23) on Mooring's simulator."""
