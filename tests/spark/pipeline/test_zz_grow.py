from __future__ import annotations
import time, resource
from tests.spark.pipeline.test_iceberg_faults import *
from tests.spark.pipeline.test_iceberg_faults import made
from twinstream.spark.pipeline.state.landed_rows import read_landed
from attrs import evolve

def test_grow(s3, made, bucket, tmp_path):
    with behind_proxies(made, s3, bucket.prefix, timeout=30) as (driven, (store, catalog)):
        journal = journal_in(driven)
        lander = BatchLander(journal, batches_of(driven, journal, FakeLeader(4500)))
        n = 0
        while (plan := lander.due()) is not None:
            store.clear(); catalog.clear()
            t = time.time(); lander.land(plan); t = time.time() - t
            n += 1
            if n % 25 == 0 or store.counts()["GET"] > 12:
                print(n, dict(store.counts()), dict(catalog.counts()), round(t, 3), flush=True)
        store.clear(); catalog.clear()
        t = time.time()
        land_all(driven, FakeLeader(4510))
        print("restart", dict(store.counts()), dict(catalog.counts()), round(time.time() - t, 3))
        store.clear(); catalog.clear()
        t = time.time(); sink = open_sink(driven); (source,) = driven.sources
        a = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        found = read_landed(sink, source, ["orders", source.dead_letters], 0, 4600)
        print("read", found.count, dict(store.counts()), round(time.time() - t, 2), a, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
