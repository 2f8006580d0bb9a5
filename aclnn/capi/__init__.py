"""The C interface: headers and a shared library with which C and C++ programs written for CANN run here."""
