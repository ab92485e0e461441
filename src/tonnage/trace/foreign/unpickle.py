"""Reads pickles of plain data without running anything: an own machine for the opcodes of containers and scalars.

A memory snapshot is a dict of lists of dicts of texts and numbers. Python's own pickle.load would import and call
whatever a file names; its C machine can be made to allocate gigabytes for one opcode, and to overrun the stack by
hashing nested tuples. Here a file that names anything but a few empty containers is refused with that name. Keys are
texts and members of sets are scalars, tuples nest at most two deep, and containers and nested marks are counted, so
that time and memory grow only with the file's bytes. The opcodes are those of CPython's Lib/pickletools.py, protocols 0
to 5.
"""

from struct import error as cut_off
from typing import Any

from tonnage.kernel.errors import InvalidInput
from tonnage.trace.foreign._opcodes import RARE, four, signed, two
from tonnage.trace.foreign.machine import Machine

MAX_MARKS = 1_000  # open at one time


def loads(data: bytes, where: str) -> Any:
    """The value of a pickle: dicts, lists, tuples, sets, texts, bytes, numbers, None. Raises InvalidInput."""
    machine = Reader(data, where)
    try:
        return machine.run()
    except InvalidInput:
        raise
    except (IndexError, cut_off):
        raise InvalidInput(
            "{where} is no whole pickle: it ends in the middle, or takes what it never made.", where=where
        ) from None
    except KeyError as error:
        raise InvalidInput(
            "{where} is no pickle of plain data: it asks for {error}, which it never stored.",
            where=where,
            error=error,
        ) from None
    except (ValueError, TypeError, AttributeError, OverflowError):  # a text that is none, a list that is none
        raise InvalidInput(
            "{where} is no pickle of plain data: its parts do not fit each other.", where=where
        ) from None


class Reader(Machine):
    """The machine with its loop."""

    def run(self) -> Any:
        """Run the frequent opcodes here, the others from a table: a snapshot has millions of the former."""
        data, stack, marks, memo = self.data, self.stack, self.marks, self.memo
        push, at = stack.append, 0
        while True:
            op = data[at]
            at += 1
            if op == 0x68:  # BINGET
                push(memo[data[at]])
                at += 1
            elif op == 0x6A:  # LONG_BINGET
                push(memo[four(data, at)[0]])
                at += 4
            elif op == 0x94:  # MEMOIZE
                memo[len(memo)] = stack[-1]
            elif op == 0x4D:  # BININT2
                push(two(data, at)[0])
                at += 2
            elif op == 0x4B:  # BININT1
                push(data[at])
                at += 1
            elif op == 0x28:  # MARK
                marks.append(len(stack))
                if len(marks) > MAX_MARKS:
                    raise InvalidInput(
                        "{where}: more than {most_marks} containers inside each other.",
                        where=self.where,
                        most_marks=MAX_MARKS,
                    )
            elif op == 0x7D:  # EMPTY_DICT
                self.push_container({})
            elif op == 0x75:  # SETITEMS
                self.fill_dict(self.items())
            elif op == 0x8C:  # SHORT_BINUNICODE
                push(self.text(at + 1, data[at]))
                at += 1 + data[at]
            elif op == 0x8A:  # LONG1
                push(int.from_bytes(self.take(at + 1, data[at]), "little", signed=True))
                at += 1 + data[at]
            elif op == 0x4A:  # BININT
                push(signed(data, at)[0])
                at += 4
            elif op == 0x2E:  # STOP
                return stack.pop()
            else:
                rare = RARE.get(op)
                if rare is None:
                    raise InvalidInput(
                        "{where} is no pickle of plain data: byte {at:,} holds opcode {op:#04x}.",
                        where=self.where,
                        at=at - 1,
                        op=op,
                    )
                at = rare(self, at)
