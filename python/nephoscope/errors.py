"""The errors that end a command, and the exit code of each (the command line's contract)."""

from nephoscope.masking import masked


class NephoscopeError(Exception):
    """An error whose message is meant for the user: what, where, what is allowed.

    A server's or a hook's words may hold a secret: the text of an error never does.
    """

    exit_code = 1

    def __str__(self) -> str:
        """Return the message without the secrets that are known."""
        return masked(super().__str__())


class MeasurementError(NephoscopeError):
    """The measurement failed: the input was right, and something else was not. Exit code 1."""

    exit_code = 1


class InputError(NephoscopeError):
    """The user gave something that cannot be used. Raised before anything is touched. Exit code 2."""

    exit_code = 2


class UndecidedError(NephoscopeError):
    """What was asked can neither be affirmed nor denied. Exit code 3."""

    exit_code = 3
