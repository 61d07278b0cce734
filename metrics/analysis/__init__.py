"""Figures computed from records: pure functions on arrays, no files, no clock.

Every ratio says what it is divided by. Times are nanoseconds of emulated time, sizes bytes, rates
bits per second, unless the name says otherwise.
"""
