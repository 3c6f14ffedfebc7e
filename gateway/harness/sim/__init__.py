"""The deterministic simulation: the real engine, runtime, feed and links in a world made from one number."""
