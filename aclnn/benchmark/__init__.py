"""The benchmark behind ``aclnn bench``: what is measured, against whom, and how.

`cells` says what there is to measure, `ours` and `peers` how each library is called, `limits` what the
machine can do, `measure` the clock, `matrix` a run of all its cells, `targets` what we want to reach;
`progress` is what one sees meanwhile, `table` and `plot` show the result.
"""
