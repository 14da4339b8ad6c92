"""Settings of all tests: hypothesis prints how to repeat a failure and never fails for slowness of the machine."""

from hypothesis import settings

settings.register_profile("kstreams", deadline=None, print_blob=True)
settings.load_profile("kstreams")
