"""Benchmarks, one question each: ``cepheid bench`` lists and runs them."""
