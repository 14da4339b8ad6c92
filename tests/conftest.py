"""Settings of all tests: what hypothesis prints, and how signals reach child processes."""

import signal

from hypothesis import settings

# A failure prints how to repeat it; none comes from the slowness of the machine.
settings.register_profile("kstreams", deadline=None, print_blob=True)
settings.load_profile("kstreams")


def ignore(number: int, frame: object) -> None:
    """Do nothing with a signal."""


# Where SIGINT is ignored (`nohup make test &`), child processes would inherit that, and tests that interrupt them would
# wait for ever. A handler is not inherited: this process goes on ignoring the signal, its children do not.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, ignore)
