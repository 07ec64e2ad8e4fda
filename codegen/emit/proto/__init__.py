"""Emitters of .proto files and of the stubs that are compiled from them."""
