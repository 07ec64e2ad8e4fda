"""The client of an object store: addresses, credentials, requests and their failures."""
