"""Texts of refused calls, in the words of CANN and of NumPy, with remedies; of statuses."""
