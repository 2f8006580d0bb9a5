"""The benchmark behind ``aclnn bench``: what is measured, against whom, and how.

`cells` says what there is to measure, `peers` are the other libraries, `limits` what the machine can do, `measure`
the clock, `matrix` a run of all its cells, `targets` what we want to reach; `table` and `plot` show
the result.
"""
