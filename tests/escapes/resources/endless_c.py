"""A loop in C that keeps the interpreter's lock and never looks for signals."""
# timeout: 1
# ends: timeout
# control: outlives

sum(range(10**13))
