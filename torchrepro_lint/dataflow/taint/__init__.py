"""Where an order comes from that differs between runs or machines, and what becomes of it."""
