"""Newton's method: the finish that certifies at any C."""
