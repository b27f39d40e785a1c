"""A call of every public method of LanceDB's Python clients, by object and method."""
