"""Reads an interval log with the Python HdrHistogram library.

Prints JSON: tag -> count, p50, p99, p99.9, max (ns), over all intervals of the tag.
"""

import json
import sys

from hdrh.histogram import HdrHistogram
from hdrh.log import HistogramLogReader

HOUR_NS = 3_600_000_000_000


def main(path):
    tags = {}
    reader = HistogramLogReader(path, HdrHistogram(1, HOUR_NS, 3))
    while (interval := reader.get_next_interval_histogram()) is not None:
        tag = interval.get_tag()
        if tag not in tags:
            tags[tag] = HdrHistogram(1, HOUR_NS, interval.significant_figures)
        tags[tag].add(interval)
    print(json.dumps({
        tag: {
            "count": all_of_it.get_total_count(),
            "p50": all_of_it.get_value_at_percentile(50.0),
            "p99": all_of_it.get_value_at_percentile(99.0),
            "p99.9": all_of_it.get_value_at_percentile(99.9),
            "max": all_of_it.get_max_value(),
        }
        for tag, all_of_it in tags.items()
    }))


main(sys.argv[1])
