"""What `import kstreams` offers."""

from __future__ import annotations

import subprocess
import sys

import kstreams as ks


def test_every_public_name_has_a_home_and_no_other_is_offered():
    assert all(getattr(ks, name) is not None for name in ks.__all__)
    assert sorted(ks._HOME_OF) == sorted(ks.__all__)
    assert not hasattr(ks, "NoSuchName")


def test_importing_kstreams_loads_what_is_used_and_no_more():
    code = "import sys, kstreams; print(len([name for name in sys.modules if name.startswith('kstreams.')]))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert int(done.stdout) == 0
