"""Importing this reads every module that an answer needs, so that forks of the process have them."""

import signal

from tonnage.kernel.reach import Reach
from tonnage.web.answer import answered
from tonnage.web.process.garbage import collect_seldom

# Ctrl-C is for the server. Python's own server of forks ignores it only after this.
signal.signal(signal.SIGINT, signal.SIG_IGN)

for _verb in ("train", "serve"):
    answered(_verb, {"model": "llama-3.2-1b", "on": "8xh100"}, Reach(files=None, hubs=False, machine=False))
collect_seldom()
