"""The driver interface, the drivers, and congestion-control knobs of NICs and switches."""
