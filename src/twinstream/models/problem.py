"""`Problem`: a refusal of a server or a warning, with a hint what to change."""

from __future__ import annotations

from attrs import frozen


@frozen
class Problem:
    """One reason why a server would refuse a request, or one warning."""

    path: str
    """Path of the setting, such as `mirror.subject_transforms[0].src`."""

    value: object
    """The value of the setting; None if it is not set."""

    rule: str
    """Identifier of the rule, such as `S-DUP-AGE`; it is stable across releases."""

    message: str
    """The reason, in one sentence."""

    hint: str = ""
    """How to solve the problem, in one sentence; may be empty."""

    err_code: int = 0
    """The error code that the server would return, or the status for a pull request.

    It is 0 for a warning, or if the server has no code for the problem.
    """

    needs_server: bool = False
    """Whether only a server can decide if the rule is violated. If so, it is not an error."""

    def __str__(self) -> str:
        code = f" ({self.err_code})" if self.err_code else ""
        hint = f" {self.hint}" if self.hint else ""
        return f"{self.path or 'config'}: {self.message}{code}{hint}"
