"""Bodies of requests for a stream S, and the expected error codes of invalid ones."""

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
    # All values of a key are read, not only the last one.
    ('{"name": 1, "name": "S"}', [10025]),
    ('{"name": "S", "max_msgs": "5"} {"max_msgs": 5}', [10025]),
    ('{"name": "S", "storage": "memory", "storage": null}', [10025]),
    ('{"name": "S", "storage": null, "storage": "memory"}', [10025]),
    ('{"name": "S", "subjects": [1], "subjects": ["a"]}', [10025]),
    ('{"name": "S", "metadata": {"a": 1, "a": "b"}}', [10025]),
    ('{"name": "S", "mirror": {"name": 5}, "mirror": {"name": "O"}}', [10025]),
    # A null empties what can be absent, and leaves the rest as it was.
    ('{"name": "S", "subjects": ["a"], "SUBJECTS": null}', []),
    ('{"name": "S", "subjects": ["a"]} {"subjects": null}', []),
    ('{"name": "S", "subjects": ["a", "b"], "subjects": [null]}', []),
    ('{"name": "S", "mirror": {"name": "O"}, "mirror": null, "mirror": {}}', [10142]),
    ('{"name": "S", "subject_transform": {"src": "a"}, "subject_transform": null}', []),
    ('{"name": "S", "metadata": {"a": "b"}, "metadata": null}', []),
    ('{"name": "S", "metadata": {"a": "b"}, "metadata": {"a": null}}', []),
    ('{"name": "S", "consumer_limits": {"max_ack_pending": 5}, "consumer_limits": null}', []),
    (
        '{"name": "S", "sources": [{"name": "O", "external": {"api": "x", "deliver": "y"}}],'
        ' "sources": [{"external": null}]}',
        [],
    ),
    (
        '{"name": "S", "sources": [{"name": "O", "subject_transforms": [{"src": "a"}]}],'
        ' "sources": [{"subject_transforms": [null, {"src": "b"}]}]}',
        [],
    ),
    ('{"name": "S", "sources": [{"name": "O"}], "sources": [null]}', [10141]),
    # Another spelling counts like another value, in the order of the text.
    ('{"name": "S", "subjects": ["a"], "SUBJECTS": ["b"], "subjects": ["c"]}', []),
    ('{"name": "S", "subjects": ["a"], "SUBJECTS": ["b"]}', []),
    ('{"name": "S", "first_seq": -0}', [10025]),
    (
        '{"name": "S", "mirror": {"name": "O", "opt_start_time": "2020-01-01T00:00:0\\u0030Z"}}',
        [],
    ),
]
