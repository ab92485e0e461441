"""Python's search for what refers to itself, in processes that answer one question after the other."""

import gc

# objects made, and not gone by themselves, after which the new ones are looked through; an answer makes about as many
COLLECT_AFTER = 10_000


def collect_seldom() -> None:
    """What a process has when it begins stays with it: nobody looks through it again. Looking through all modules
    and catalogues after every tenth answer made that answer take twice as long as the others.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(COLLECT_AFTER, *gc.get_threshold()[1:])
