"""What each part of a running application gives to its metrics; `all_metrics.py` puts it together."""
