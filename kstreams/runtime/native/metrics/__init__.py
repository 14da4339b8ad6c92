"""The metrics of the parts of a running application; `application_metrics.py` joins them."""
