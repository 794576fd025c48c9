"""Tables by a token of the subject, or of a bucket's key: their names, and their limit.

`table = "orders_{subject[2]}"` lands each message in a table for its token. No two tokens have the
same table, also where the names of folders do not distinguish upper and lower case:

- lower-case letters, digits and `-` stay as they are;
- `_` becomes `__`, and an upper-case letter becomes `_` and its lower-case letter: `EU` is `_e_u`;
- any other byte becomes `_` and three digits: `é` is `_195_169`;
- a name of more than 100 characters is cut, and a digest of the token and `_` are added;
- messages whose subject has no such token are in the table for `none_`.

Catalogs do not accept `-`, which becomes `_045` there.
"""

from __future__ import annotations

import hashlib
import re
import string
from collections.abc import Iterable
from typing import Final

from twinstream.spark.errors import OptionError
from twinstream.spark.landing.partitions import other_tokens, tokens_in

__all__ = ["MAX_TABLES", "named", "parse_table", "refuse_many"]

MAX_TABLES: Final = 100
"""The default limit of tables of a source whose tables are by a token."""

_TABLE: Final = re.compile(r"(.*)\{(subject|key)\[(\d{1,4})\]\}", re.ASCII)
_IN_CATALOGS: Final = frozenset(string.ascii_lowercase + string.digits)
_IN_FOLDERS: Final = _IN_CATALOGS | {"-"}

# No token has a name that ends in one underscore, so these names are of no token.
_NONE: Final = "none_"
_END: Final = "_"
_LONGEST: Final = 100
_PREFIX: Final = 50
_DIGEST: Final = 32


def parse_table(text: str, column: str) -> tuple[str, int]:
    """Return the prefix of the names, and the number of the token; 0 for a name without a token.

    `column` is that of the subject or the key. Raises `ValueError` with the reason for a wrong
    form.
    """
    word = tokens_in(column)
    found = _TABLE.fullmatch(text)
    if found is None:
        if "{" in text or "}" in text:
            raise ValueError(
                f"{text!r} is not a name with a token of the {word} at its end, as in"
                f' "orders_{{{word}[2]}}"'
            )
        return text, 0
    prefix, token = found[1], int(found[3])
    if not token:
        raise ValueError(f"{found[2]}[0]: tokens are counted from 1")
    if found[2] != word:
        raise ValueError(f"{text!r}: {other_tokens(column, token)}")
    if not prefix:
        raise ValueError(f'{text!r} needs a name before the token, as in "orders_{text}"')
    if len(prefix) > _PREFIX:
        raise ValueError(f"{text!r} has a name of more than {_PREFIX} characters before the token")
    return prefix, token


def named(prefix: str, token: str | None, *, in_catalog: bool = False) -> str:
    """Return the name of the table for a token, which is `None` if the subject has none.

    `in_catalog` is that of `FileSettings`.
    """
    if token is None:
        return prefix + _NONE
    plain = _IN_CATALOGS if in_catalog else _IN_FOLDERS
    name = prefix + "".join(sign if sign in plain else _escaped(sign) for sign in token)
    if len(name) <= _LONGEST:
        return name
    digest = hashlib.sha256(token.encode()).hexdigest()[:_DIGEST]
    return name[: _LONGEST - _DIGEST - len(_END)] + digest + _END


def _escaped(sign: str) -> str:
    if sign == "_":
        return "__"
    if sign in string.ascii_uppercase:
        return f"_{sign.lower()}"
    return "".join(f"_{byte:03}" for byte in sign.encode())


def refuse_many(prefix: str, token: int, tables: Iterable[str], most: int) -> None:
    """Raise `OptionError` if there are more than `most` tables by a token."""
    names = sorted(set(tables))
    if len(names) > most:
        raise OptionError(
            "max_tables",
            f"token {token} of the subject or key has more than {most} values, each with a table"
            f" {prefix}…, the last one {names[-1]}; nothing of the batch was landed: set a greater"
            " max_tables, or name another token",
        )
