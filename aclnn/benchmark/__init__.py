"""The benchmark behind ``aclnn bench``: cells, peers, measurement.

`cells` defines the matrix, `rows` the cells of row-wise operators, `attention` those of attention, `ours` and `peers` call each library, `limits` measures the memory bandwidth,
`measure` times, `matrix` runs all cells, `targets` has the targets; `progress` shows a run, `table` and
`plot` its result.
"""
