"""Scores of extractors with n and confidence intervals, baselines, the report, recorded results."""
