"""The benchmark behind ``aclnn bench``: what is measured, against whom, and how.

`cells` is the matrix, `peers` are the other libraries, `limits` what the machine can do, `measure`
the clock, `session` one run of the matrix, `targets` what we want to reach; `table` and `plot` show
the result.
"""
