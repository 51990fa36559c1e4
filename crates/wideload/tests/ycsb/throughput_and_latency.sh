#!/bin/sh
# As labs have them: from the text of a run on stdin, operations per second, and mean and 99th
# percentile of each operation, as one line of values with commas.
awk -F', ' '
    $1 == "[OVERALL]" && $2 == "Throughput(ops/sec)" { throughput = $3 }
    $2 == "AverageLatency(us)" && $1 != "[CLEANUP]" { mean[$1] = $3 }
    $2 == "99thPercentileLatency(us)" && $1 != "[CLEANUP]" { p99[$1] = $3 }
    $2 == "Return=OK" { ok[$1] = $3 }
    END {
        printf "%.3f", throughput
        for (op in mean) printf ",%s,%d,%.1f,%d", op, ok[op], mean[op], p99[op]
        print ""
    }'
