"""Figures of a run from its JSON array: one line of METRIC.measurement=value each, sorted."""
import json
import sys

with open(sys.argv[1]) as results:
    figures = json.load(results)
for figure in sorted(figures, key=lambda f: (f["metric"], f["measurement"])):
    print("{metric}.{measurement}={value}".format(**figure))
