"""Files that Arrow writes to S3 and reads there: whole or not there, in parts of bounded size."""

from __future__ import annotations

import os

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

from tests.s3_proxy import S3Proxy
from tests.s3_server import S3Server
from twinstream.lake.errors import StorageError
from twinstream.lake.objects.files import arrow_files
from twinstream.lake.objects.folder import ObjectFolder
from twinstream.lake.objects.store import ObjectStore


def test_a_file_appears_when_it_is_closed(bucket: ObjectFolder) -> None:
    rows = pa.table({"a": list(range(1000)), "b": ["x"] * 1000})
    file = arrow_files(bucket).open_output_stream("t/data/a.parquet")
    with pq.ParquetWriter(file, rows.schema) as writer:
        writer.write_table(rows)
        assert ObjectStore(bucket).names("t/data") == []
    size = file.tell()
    file.close()
    found = ObjectStore(bucket).get("t/data/a.parquet")
    assert found is not None
    assert len(found) == size
    read = ds.dataset(["t/data/a.parquet"], filesystem=arrow_files(bucket))
    assert read.to_table(filter=ds.field("a") >= 990).column("a").to_pylist() == list(
        range(990, 1000)
    )


def test_a_large_file_is_sent_in_parts(s3: S3Server, bucket: ObjectFolder) -> None:
    data = os.urandom(40 << 20)
    with S3Proxy(s3.url) as proxy:
        folder = s3.folder(bucket.prefix, proxy.url)
        file = arrow_files(folder).open_output_stream("t/large")
        for start in range(0, len(data), 1 << 20):
            file.write(data[start : start + (1 << 20)])
        assert ObjectStore(bucket).get("t/large") is None
        file.close()
        assert proxy.counts() == {"POST": 2, "PUT": 3}
        sizes = [int(each.headers["content-length"]) for each in proxy.requests]
        assert max(sizes) <= 16 << 20
    assert ObjectStore(bucket).get("t/large") == data


def test_a_file_that_is_not_there_is_named(bucket: ObjectFolder) -> None:
    with pytest.raises(StorageError, match=f"cannot read {bucket}/t/none: the server answered 404"):
        ds.dataset(["t/none"], filesystem=arrow_files(bucket)).to_table()


def test_a_size_that_is_refused_is_explained(s3: S3Server, bucket: ObjectFolder) -> None:
    with S3Proxy(s3.url, lambda _: "expired") as proxy:
        files = arrow_files(s3.folder(bucket.prefix, proxy.url))
        with pytest.raises(StorageError, match=r"cannot read .*t/none: the server refuses access"):
            files.get_file_info("t/none")
