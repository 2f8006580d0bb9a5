"""A flag that threads wait for, and that interrupts leave whole."""

from _thread import allocate_lock


cdef class Flag:
    """As a `threading.Event`, whose lock a signal handler that raises may leave locked for ever.

    It is compiled, and the interpreter's lock is what keeps threads apart: handlers run only while
    a thread waits, and then nothing is held.
    """

    cdef bint raised
    cdef list waiting  # a locked lock for each thread that waits, or was interrupted

    def __cinit__(self):
        self.waiting = []

    def set(self):
        """Let all go on that wait."""
        cdef list waiting = self.waiting
        self.raised, self.waiting = True, []
        for turn in waiting:
            turn.release()

    def clear(self):
        """Let those wait that come from now on."""
        self.raised = False

    def is_set(self):
        """Whether nobody would wait."""
        return self.raised

    def wait(self, timeout=None):
        """Wait until it is set, at most so many seconds; whether it was."""
        if self.raised:
            return True
        turn = allocate_lock()
        turn.acquire()
        self.waiting.append(turn)
        if turn.acquire(True, -1 if timeout is None else timeout):
            return True
        if turn in self.waiting:
            self.waiting.remove(turn)
        return self.raised
