"""Tools for users of rft-service; this package needs no part of the server."""
