"""The .proto files, and the stubs that are compiled from them."""
