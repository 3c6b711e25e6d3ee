"""The step view: two solvers side by side in the plane, one row at a time, as one HTML file."""
