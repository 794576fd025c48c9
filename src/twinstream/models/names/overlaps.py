"""Find pairs of related subjects in long lists, without comparing all pairs.

The caller chooses the relation: `is_contained` or `can_meet` of `_subjects`. Short lists are
compared pair by pair with this function.

For long lists, the second list is stored as bit sets. There is one set for each position and token;
bit n of the set means that subject n of the list has this token at this position. Intersections of
the sets for the tokens of a subject yield its related subjects. This takes a few operations on long
integers per token, independent of wildcards. A search in a trie would branch at each wildcard. The
subjects are looked up in order, and share the operations of the tokens with which they begin.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, TypeAlias

from twinstream.models.names.subjects import is_contained, is_literal

Relation: TypeAlias = Callable[[str, str], bool]
_Step: TypeAlias = Callable[[dict[str, int], str, int, int], tuple[int, int]]

# The number of pairs up to which a comparison of all pairs is faster than bit sets.
_PAIRS: Final = 256
# The maximum number of bits in a set. Longer lists are processed in chunks of this size.
_CHUNK: Final = 4096

# Keys of sets that are not for a particular token. They contain a dot, which no token contains. The
# set with such a key contains the subjects that have, at its position:
# - `_HAS`: a token, which may be empty; `_WORD`: a token that is not empty
# - `_STAR`: the token `*`; `_LIKE_STAR`: a longer token that begins with `*`
# - `_WILD`: a token that begins with `*` or `>`; `_REST`: the token `>`
# - `_END`: its end; `_OPEN_END`: its end, and `>` as one of its tokens
_HAS: Final = ".has"
_WORD: Final = ".word"
_STAR: Final = ".star"
_LIKE_STAR: Final = ".like star"
_WILD: Final = ".wild"
_REST: Final = ".rest"
_END: Final = ".end"
_OPEN_END: Final = ".open end"


def first_related(
    ones: Sequence[str],
    others: Sequence[str],
    relation: Relation,
    *,
    apart: bool = False,
    later: bool = False,
) -> dict[int, int]:
    """Return, for each index of `ones`, the index of the first related subject in `others`.

    Indexes of subjects without a related subject are omitted.

    Args:
        ones: The subjects to look up.
        others: The subjects to search.
        relation: `is_contained` or `can_meet`.
        apart: Ignore pairs of equal indexes. `ones` and `others` must be the same list.
        later: Ignore pairs unless the index in `others` is higher than the index in `ones`. The
            lists must be the same.
    """
    if len(ones) * len(others) <= _PAIRS:
        return _compared(ones, others, relation, apart, later)
    found: dict[int, int] = {}
    order = sorted(range(len(ones)), key=ones.__getitem__)
    for start in range(0, len(others), _CHUNK):
        sets = _Sets(others[start : start + _CHUNK])
        related = sets.containing if relation is is_contained else sets.meeting
        for index in order:
            if index in found:
                continue
            related_bits, own = related(ones[index]), max(index - start, -1)
            if apart and own >= 0:
                related_bits &= ~(1 << own)
            if later:
                # Clear the bits of the indexes up to the own one.
                related_bits = related_bits >> (own + 1) << (own + 1)
            if related_bits:
                # The lowest bit that is set is that of the first related subject.
                found[index] = start + (related_bits & -related_bits).bit_length() - 1
    return dict(sorted(found.items()))


def _compared(
    ones: Sequence[str], others: Sequence[str], relation: Relation, apart: bool, later: bool
) -> dict[int, int]:
    """Compare each pair of subjects. The result is that of `first_related`."""
    found: dict[int, int] = {}
    for index, one in enumerate(ones):
        for at in range(index + 1 if later else 0, len(others)):
            if not (apart and at == index) and relation(one, others[at]):
                found[index] = at
                break
    return found


class _Sets:
    """Up to `_CHUNK` subjects, stored as bit sets."""

    def __init__(self, subjects: Sequence[str]) -> None:
        self._places: list[dict[str, int]] = [{}]
        self._equal: dict[str, int] = {}
        self._all = (1 << len(subjects)) - 1
        self._literal = 0
        self._walks: dict[str, _Walk] = {}
        for at, subject in enumerate(subjects):
            self._add(subject, 1 << at)

    def _add(self, subject: str, bit: int) -> None:
        """Add a subject to the sets. `bit` is the bit of the subject.

        Each place has a set for each kind of token there, and one for the subjects that end before
        it.
        """
        self._equal[subject] = self._equal.get(subject, 0) | bit
        if is_literal(subject):
            self._literal |= bit
        tokens = subject.split(".")
        while len(self._places) <= len(tokens):
            self._places.append({})
        for place, token in zip(self._places, tokens, strict=False):
            for label in _labels(token):
                place[label] = place.get(label, 0) | bit
        after_last = self._places[len(tokens)]
        after_last[_END] = after_last.get(_END, 0) | bit
        if ">" in tokens:
            after_last[_OPEN_END] = after_last.get(_OPEN_END, 0) | bit

    def _place(self, at: int) -> dict[str, int]:
        return self._places[at] if at < len(self._places) else {}

    def containing(self, subject: str) -> int:
        """Return the set of the subjects that match everything that `subject` matches."""
        return self._containing(subject.split("."), self._all)

    def meeting(self, subject: str) -> int:
        """Return the set of the subjects that have a match in common with `subject`."""
        tokens, wild = subject.split("."), self._all & ~self._literal
        found = self._equal.get(subject, 0)
        if is_literal(subject):
            return found | self._containing(tokens, wild)
        return found | self._contained(tokens, self._literal) | self._crossing(tokens, wild)

    def _containing(self, tokens: list[str], left: int) -> int:
        found, left = self._walk(self._containing_step, tokens, left)
        return found | left & self._place(len(tokens)).get(_END, 0)

    def _contained(self, tokens: list[str], left: int) -> int:
        """Return the literal subjects of the set `left` that the subject with `tokens` matches."""
        found, left = self._walk(self._contained_step, tokens, left)
        return found | left & self._place(len(tokens)).get(_END, 0)

    def _crossing(self, tokens: list[str], left: int) -> int:
        """Return the wildcard subjects of the set `left` that meet the subject with `tokens`."""
        found, left = self._walk(self._crossing_step, tokens, left)
        return found | (left if ">" in tokens else left & self._place(len(tokens)).get(_END, 0))

    def _walk(self, step: _Step, tokens: list[str], left: int) -> tuple[int, int]:
        """Take a step for each token, until no candidate is left; return the last state.

        A state is the set of the related subjects, and the set of the candidates that are left. The
        steps of the tokens that the previous walk began with are not repeated. The callers look up
        sorted subjects, so that long subjects that begin alike take few steps.
        """
        walk = self._walks.setdefault(step.__name__, _Walk([], [(0, left)]))
        states = walk.states
        same = min(_common(walk.tokens, tokens), len(states) - 1)
        del states[same + 1 :]
        found, left = states[-1]
        for at in range(same, len(tokens)):
            if not left:
                break
            found, left = step(self._place(at), tokens[at], found, left)
            states.append((found, left))
        walk.tokens = tokens
        return found, left

    @staticmethod
    def _containing_step(
        place: dict[str, int], token: str, found: int, left: int
    ) -> tuple[int, int]:
        found |= left & place.get(_REST, 0)
        if token in ("", ">"):
            return found, 0
        fits = place.get(_STAR, 0)
        if token != "*":
            fits |= place.get(_LIKE_STAR, 0) | place.get(token, 0)
        return found, left & fits

    @staticmethod
    def _contained_step(
        place: dict[str, int], token: str, found: int, left: int
    ) -> tuple[int, int]:
        if token == ">":
            return left & place.get(_HAS, 0), 0
        if not token:
            return 0, 0
        return found, left & place.get(_WORD if token[0] == "*" else token, 0)

    @staticmethod
    def _crossing_step(place: dict[str, int], token: str, found: int, left: int) -> tuple[int, int]:
        found |= left & place.get(_OPEN_END, 0)
        if not token:
            return found, 0
        if token[0] in "*>":
            return found, left & place.get(_WORD, 0)
        return found, left & (place.get(_WILD, 0) | place.get(token, 0))


class _Walk:
    """The tokens of the last walk, and its states: the first one, and one after each token."""

    __slots__ = ("states", "tokens")

    def __init__(self, tokens: list[str], states: list[tuple[int, int]]) -> None:
        self.tokens = tokens
        self.states = states


def _common(ones: list[str], others: list[str]) -> int:
    """Return the number of tokens with which both lists begin."""
    length = min(len(ones), len(others))
    # Most lists differ in their last token, if they begin alike.
    if length and ones[: length - 1] == others[: length - 1]:
        return length if ones[length - 1] == others[length - 1] else length - 1
    for at in range(length):
        if ones[at] != others[at]:
            return at
    return length


def _labels(token: str) -> list[str]:
    """Return the keys of the sets that a subject with this token belongs to."""
    if not token:
        return [_HAS]
    labels = [_HAS, _WORD, token]
    if token[0] in "*>":
        labels.append(_WILD)
    if token == ">":
        labels.append(_REST)
    elif token[0] == "*":
        labels.append(_STAR if token == "*" else _LIKE_STAR)
    return labels
