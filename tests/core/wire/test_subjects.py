"""Names and subjects: what is refused before it is sent, and the subjects of the API."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.tuned import tuner
from twinstream.core.wire.subject_match import covers, crossing, matcher, widest
from twinstream.core.wire.subjects import (
    ApiSubjects,
    check_filter,
    check_name,
    check_prefix,
    check_queue,
    check_subject,
    known_subject,
)
from twinstream.errors import BadArgument

# White space to Python; the server stores subjects and names with it, and clients send it.
ODD = ["\0", "\x0b", *map(chr, range(0x1C, 0x20)), "\x85", "\xa0", "\u2009", "\u2028", "\u3000"]
LITERAL = ["a", "a.b", "A-b_c.1", "$JS.API.INFO", "ü.ß", "a*b.c>d", "a.*b", "x" * 3000]
WILD = ["*", ">", "a.*", "a.>", "*.*.c", "a.*.>"]
NEVER = [
    "",
    ".",
    ".a",
    "a.",
    "a..b",
    "a b",
    "a\tb",
    "a\r\nPUB x 0\r\n",
    "a\n",
    ">.a",
    "a.>.b",
    "a\ud800",
]


@pytest.mark.parametrize("subject", LITERAL)
def test_literal_subjects_are_valid_subjects_and_filters(subject: str) -> None:
    assert check_subject(subject) == check_filter(subject) == subject.encode()


@pytest.mark.parametrize("subject", WILD)
def test_wildcards_are_to_listen_to(subject: str) -> None:
    assert check_filter(subject) == subject.encode()
    with pytest.raises(BadArgument, match="wildcard"):
        check_subject(subject)


@pytest.mark.parametrize("subject", NEVER)
def test_what_is_no_subject(subject: str) -> None:
    for check in (check_subject, check_filter):
        with pytest.raises(BadArgument, match="subject"):
            check(subject)


@pytest.mark.parametrize("subject", [None, b"a", 1, ["a"]])
def test_a_subject_is_text(subject: object) -> None:
    with pytest.raises(BadArgument, match="text"):
        check_subject(subject)  # type: ignore[arg-type]


@given(st.text(max_size=8))
def test_text_reaches_the_wire_as_a_single_token(subject: str) -> None:
    try:
        encoded = check_filter(subject)
    except BadArgument:
        return
    assert re.fullmatch(rb"[^ \t\r\n]+", encoded)


@pytest.mark.parametrize("odd", ODD)
def test_what_only_python_calls_white_space_may_be_part_of_subjects_and_names(odd: str) -> None:
    text = f"{odd}a{odd}b{odd}"
    assert check_subject(text) == check_filter(text) == check_queue(text) == text.encode()
    assert check_name(text, "stream") == text
    assert ApiSubjects().create_consumer("S", text, [text]).endswith(f".S.{text}.{text}")


def test_a_form_feed_may_be_part_of_a_subject_but_not_of_a_name() -> None:
    assert check_subject("a\fb") == b"a\fb"
    with pytest.raises(BadArgument, match="white space"):
        check_name("a\fb", "stream")


@pytest.mark.parametrize("subject", ["x" * 3001, "ü" * 1501, "s." + "x" * 5000])
def test_a_subject_fits_into_a_protocol_line(subject: str) -> None:
    for check in (check_subject, check_filter, known_subject):
        with pytest.raises(BadArgument, match=r"at most 3000 .*4096"):
            check(subject)


def test_no_line_of_the_protocol_is_longer_than_a_server_reads() -> None:
    inbox = check_prefix("i" * 200) + "." + "t" * 40
    assert len(f"HPUB {'x' * 3000} {inbox} 10000000 10000000\r\n") <= 4096
    queue = check_queue("q" * 500).decode()
    assert len(f"SUB {'f' * 3000} {queue} 1000000000\r\n") <= 4096
    for check in (check_prefix, check_queue):
        with pytest.raises(BadArgument, match="longer than"):
            check("x" * 501)


def test_queue_group_is_one_token_or_none() -> None:
    assert check_queue("") == b""
    assert check_queue("workers.1") == b"workers.1"
    for bad in ("a b", "a\r\n", "\t", "\ud800"):
        with pytest.raises(BadArgument, match="queue"):
            check_queue(bad)


@pytest.mark.parametrize("name", ["A", "a-b_c", "ü", "x" * 255, "$x", "a:b", "{}"])
def test_valid_names_are_accepted(name: str) -> None:
    assert check_name(name, "stream") == name


@pytest.mark.parametrize(
    "name", ["a b", "a.b", "a*", ">", "a/b", "a\\b", "a\tb", "a\r", "a\n", "\f", "\ud800"]
)
def test_names_that_the_server_refuses(name: str) -> None:
    with pytest.raises(BadArgument, match="consumer name"):
        check_name(name, "consumer")


@pytest.mark.parametrize("name", ["", None, 3])
def test_a_name_is_needed(name: object) -> None:
    with pytest.raises(BadArgument, match="a stream needs a name"):
        check_name(name, "stream")  # type: ignore[arg-type]


def test_a_name_has_a_length_in_bytes() -> None:
    with pytest.raises(BadArgument, match="longer than 255 bytes"):
        check_name("x" * 256, "stream")
    with pytest.raises(BadArgument, match="longer than 255 bytes"):
        check_name("ü" * 128, "stream")


def test_subjects_of_the_api() -> None:
    api = ApiSubjects()
    assert [
        api.account_info(),
        api.stream("CREATE", "S"),
        api.streams("NAMES"),
        api.message("GET", "S"),
        api.direct_get("S"),
        api.consumer("INFO", "S", "C"),
        api.consumers("LIST", "S"),
        api.create_consumer("S", "C", []),
        api.create_consumer("S", "C", ["a.*"]),
        api.create_consumer("S", "C", ["a", "b"]),
        api.next_message("S", "C"),
        api.cluster("SERVER.REMOVE"),
        api.account("PURGE", "A"),
        api.account("STREAM.MOVE", "A", "S"),
    ] == [
        "$JS.API.INFO",
        "$JS.API.STREAM.CREATE.S",
        "$JS.API.STREAM.NAMES",
        "$JS.API.STREAM.MSG.GET.S",
        "$JS.API.DIRECT.GET.S",
        "$JS.API.CONSUMER.INFO.S.C",
        "$JS.API.CONSUMER.LIST.S",
        "$JS.API.CONSUMER.CREATE.S.C",
        "$JS.API.CONSUMER.CREATE.S.C.a.*",
        "$JS.API.CONSUMER.CREATE.S.C",
        "$JS.API.CONSUMER.MSG.NEXT.S.C",
        "$JS.API.SERVER.REMOVE",
        "$JS.API.ACCOUNT.PURGE.A",
        "$JS.API.ACCOUNT.STREAM.MOVE.A.S",
    ]


def test_a_long_filter_stays_out_of_the_subject_that_creates_a_consumer() -> None:
    api = ApiSubjects()
    plain = api.create_consumer("S", "C", [])
    fits = "x" * (3000 - len(plain) - 1)
    assert api.create_consumer("S", "C", [fits]) == f"{plain}.{fits}"
    assert api.create_consumer("S", "C", [fits + "x"]) == plain


def test_a_long_subject_stays_out_of_the_subject_that_asks_for_its_last_message() -> None:
    api = ApiSubjects()
    fits = "x" * (3000 - len(api.direct_get("S")) - 1)
    assert api.direct_last("S", fits) == f"{api.direct_get('S')}.{fits}"
    assert api.direct_last("S", fits + "x") is None


def test_every_call_checks_its_names() -> None:
    api = ApiSubjects()
    for call in (
        lambda: api.stream("INFO", "a.b"),
        lambda: api.message("GET", "a b"),
        lambda: api.direct_get(""),
        lambda: api.consumer("INFO", "S", "c.d"),
        lambda: api.consumer("INFO", "S.", "c"),
        lambda: api.consumers("LIST", "*"),
        lambda: api.create_consumer("S", "C", ["a b"]),
        lambda: api.next_message("S", "\ud800"),
    ):
        with pytest.raises(BadArgument):
            call()


def test_api_prefix_is_derived_from_a_domain_or_given() -> None:
    assert ApiSubjects.of(domain=None, prefix=None).prefix == "$JS.API"
    assert ApiSubjects.of(domain="hub", prefix=None).prefix == "$JS.hub.API"
    assert ApiSubjects.of(domain=None, prefix="from.acme.").prefix == "from.acme"
    with pytest.raises(BadArgument, match="not both"):
        ApiSubjects.of(domain="hub", prefix="x")
    for domain, prefix in ((None, "a b"), (None, "a.>"), ("a.b", None)):
        with pytest.raises(BadArgument):
            ApiSubjects.of(domain=domain, prefix=prefix)


@pytest.mark.parametrize(
    ("pattern", "subject", "wanted"),
    [
        ("a.b", "a.b", True),
        ("a.b", "a.b.c", False),
        ("a.b", "axb", False),
        ("a.*", "a.b", True),
        ("a.*", "a", False),
        ("a.*", "a.b.c", False),
        ("a.*.c", "a.b.c", True),
        ("a.>", "a.b.c", True),
        ("a.>", "a", False),
        ("*.>", "a.b", True),
        ("a*", "ab", False),
    ],
)
def test_filters_match_as_the_server_does(pattern: str, subject: str, wanted: bool) -> None:
    matches = matcher([pattern, "never"])
    assert matches is not None
    assert bool(matches(subject.encode())) is wanted


def test_filters_that_match_everything() -> None:
    assert matcher([]) is None
    assert matcher(["a", ">"]) is None
    with pytest.raises(BadArgument):
        matcher(["a..b"])


def test_a_known_subject_is_checked_as_any_other() -> None:
    for _ in range(2):
        assert known_subject("a.b") == b"a.b"
        for wrong in ("a.*", "", "a b", "a..b"):
            with pytest.raises(BadArgument):
                known_subject(wrong)


@pytest.mark.parametrize(
    ("filters", "left"),
    [
        (["a", "b", "a"], ("a", "b")),
        (["a.b", "a.*", "a.>", "a"], ("a.>", "a")),
        (["a.*", "*.b"], ("a.*", "*.b")),
        ([">", "a"], (">",)),
    ],
)
def test_filters_that_another_one_covers_are_left_out(
    filters: list[str], left: tuple[str, ...]
) -> None:
    assert widest(filters) == left


@pytest.mark.parametrize(
    ("filters", "expected"),
    [
        (["a.*", "*.b"], True),
        (["a", "b", "*.c", "a.>"], True),
        (["a.>", "a"], False),
        (["a.*", "b.*", "a.b.c"], False),
        (["a.b", "a.*.c"], False),
        ([], False),
    ],
)
def test_filters_cross_when_a_subject_may_match_two(filters: list[str], expected: bool) -> None:
    assert crossing(filters) is expected


TOKENS = st.sampled_from(["a", "b", "*", "*x", "=*x", ">y", "=", "=a"])
FILTERS = st.lists(
    st.tuples(st.lists(TOKENS, max_size=3), st.sampled_from(["a", "*", ">", "*x"])).map(
        lambda parts: ".".join([*parts[0], parts[1]])
    ),
    max_size=8,
)


def meet(one: list[str], other: list[str]) -> bool:
    """Return whether a subject may match both filters, each of which is a list of tokens."""
    for token, test in zip(one, other, strict=False):
        if ">" in {token, test}:
            return True
        if token != test and "*" not in {token, test}:
            return False
    return len(one) == len(other)


@pytest.mark.parametrize("pairs", [256, -1])
@given(filters=FILTERS)
def test_relations_of_filters_are_those_of_their_pairs(pairs: int, filters: list[str]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        tuner(patch, __name__)("compared pairs", pairs)
        kept, crosses = widest(filters), crossing(filters)
    different = dict.fromkeys(filters)
    assert kept == tuple(
        each
        for each in different
        if not any(other != each and covers(other, each) for other in different)
    )
    assert crosses is any(
        meet(one.split("."), other.split("."))
        for index, one in enumerate(filters)
        for other in filters[:index]
    )


def test_tens_of_thousands_of_wildcards_are_compared_within_seconds() -> None:
    filters = [f"a.{number}.*" for number in range(20_000)]
    assert widest(filters) == tuple(filters)
    assert not crossing(filters)
    assert widest([*filters, "a.>"]) == ("a.>",)


@pytest.mark.parametrize(
    ("rest", "stream"),
    [
        ("STREAM.INFO.S", "S"),
        ("STREAM.MSG.GET.S", "S"),
        ("STREAM.LEADER.STEPDOWN.S", "S"),
        ("STREAM.PEER.REMOVE.S", "S"),
        ("STREAM.INFO.MSG", "MSG"),
        ("CONSUMER.CREATE.S.c.orders.new", "S"),
        ("CONSUMER.LEADER.STEPDOWN.S.c", "S"),
        ("CONSUMER.NAMES.S", "S"),
        ("DIRECT.GET.S", "S"),
        ("DIRECT.GET.S.orders.new", "S"),
        ("STREAM.NAMES", None),
        ("STREAM", None),
        ("STREAM.MSG", None),
        ("INFO", None),
        ("META.LEADER.STEPDOWN", None),
    ],
)
def test_the_stream_that_a_subject_of_the_api_names(rest: str, stream: str | None) -> None:
    for api in (ApiSubjects(), ApiSubjects.of(domain="hub", prefix=None)):
        assert api.stream_of(f"{api.prefix}.{rest}") == stream
        # A subject of the program's own that happens to look like one.
        assert api.stream_of(rest) is None


def test_the_domain_of_a_prefix() -> None:
    assert ApiSubjects.of(domain="hub", prefix=None).domain == "hub"
    assert ApiSubjects.of(domain=None, prefix=None).domain is None
    assert ApiSubjects.of(domain=None, prefix="app.API").domain is None
