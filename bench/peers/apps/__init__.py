"""Producer and worker programs. Those of a peer run in the peers' environment.

Nothing here may need more than the standard library and the peer itself, whose environment has no more.
"""
