"""Bodies of requests for a stream S, and the codes of all that is wrong with them."""

from __future__ import annotations

TEXTS: list[tuple[str, list[int]]] = [
    ("", [10056]),
    ("null", [10056]),
    ('{"name": "a b", "name": "S"}', []),
    ('{"name": "S", "subjects": ["a", "a"], "subjects": ["b"]}', []),
    ('{"name": "S", "mirror": {"name": "O"}, "mirror": {"filter_subject": "a"}}', []),
    ('{"name": "S"} {"max_age": 5}', [10052]),
    ('{"name": "S", "retention": "limit\\u0073"}', [10025]),
    ('{"name": "S", "compression": "s\\u0032"}', []),
    ('{"na\u017fe": "S"}', [10025, 10056]),
    ('{"max_m\u017fgs": 5, "name": "S"}', []),
    ('{"name": "S", "max_msgs": 1.0}', [10025]),
    ('{"name": "S", "max_msgs": 1e3}', [10025]),
    ('{"name": "S", "max_msgs": -0}', []),
    ('{"name": "S", "max_msgs": +1}', [10025]),
    ('{"name": "S", "max_msgs": NaN}', [10025]),
    ('{"name": "S", "description": null}', []),
    ('{"name": "S", "mirror": {"name": "O"}, "mirror": null}', []),
    ('{"NAME": "S", "metadata": {"a": "1"}, "metadata": {"b": "2"}}', []),
    ('{"name": "S", "placement": {"tags": ["a"], "tags": []}}', []),
    ('{"name": "S", "no_ack": true, "no_ack": null}', []),
    ('{"name": "S", "opt_start_seq": 1}', [10025]),
    ("[]", [10025]),
    ('{"name": "S",}', [10025]),
    ('{"name": "S" /* x */}', [10025]),
    ('{"name": "S", "subjects": ["a" "b"]}', [10025]),
    ('{"name": "S", "sources": [{}]}', [10141]),
    # A list that stands there twice: its objects add up one by one, as far as both go.
    (
        '{"name": "S", "sources": [{"name": "O", "filter_subject": "a"}],'
        ' "sources": [{"name": "O"}, {"name": "O"}]}',
        [],
    ),
    (
        '{"name": "S", "SOURCES": [{"name": "O", "filter_subject": "a"}],'
        ' "sources": [{"name": "O"}, {"name": "O"}]}',
        [],
    ),
    (
        '{"name": "S", "sources": [{"name": "O"}, {"name": "P"}], "sources": [{"name": "O"}]}',
        [],
    ),
]
