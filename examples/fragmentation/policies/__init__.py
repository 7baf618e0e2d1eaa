"""Six placement policies for shared GPUs as plugins, one a file. `mooring run --plugins` takes this folder."""
