"""What is wrong with a setting, and what to do about it."""

from __future__ import annotations

from attrs import frozen


@frozen
class Problem:
    """One reason why a server would refuse a request."""

    path: str
    """Place of the setting, such as ``mirror.subject_transforms[0].src``."""

    value: object
    """What stands there; None where nothing does."""

    rule: str
    """Identity of the rule, such as ``S-DUP-AGE``; stays the same over releases."""

    message: str
    """The reason, one sentence."""

    hint: str = ""
    """What to try, one sentence."""

    err_code: int = 0
    """The server's error code; 0 where the server has none."""

    needs_server: bool = False
    """Whether only a server can tell if this is a problem; no error then."""

    def __str__(self) -> str:
        code = f" ({self.err_code})" if self.err_code else ""
        hint = f" {self.hint}" if self.hint else ""
        return f"{self.path or 'config'}: {self.message}{code}{hint}"
