#!/bin/busybox sh
# The first process of the emulated guest: does with the program what the tests judge, and sends
# what it saw through the second serial port. `out/PHASE/` is what a phase leaves.

/bin/busybox --install -s /bin
export PATH=/bin HOME=/tmp
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev
mount -t tmpfs tmp /tmp
mount -t cgroup2 groups /sys/fs/cgroup
GROUPS_DIR=/sys/fs/cgroup
echo +cpuset >$GROUPS_DIR/cgroup.subtree_control
ip link set lo up
mkdir -p /tmp/out
cd /tmp || exit 1

# One instance on the first cpu of each NUMA node, the client on the second cpus.
PLACES="--client-cpus 1,3,5,7,9,11,13,15 --layout per-numa --threads 8 --wait sleep"

phase() {
    DIR=/tmp/out/$1
    mkdir -p $DIR
    echo "phase $1 at $(cut -d' ' -f1 /proc/uptime) s"
}

# The reference target on these cpus, by its command line; no process is forked to find it.
instance_on() {
    for dir in /proc/[0-9]*; do
        line=
        read -r line 2>/dev/null <$dir/cmdline
        case $line in *serve--listen*--cpus$1) echo ${dir#/proc/} ;; esac
    done
}

# What the kernel says of every instance.
look() {
    for cpu in 0 2 4 6 8 10 12 14; do
        pid=$(instance_on $cpu)
        cat /proc/$pid/numa_maps >$DIR/$cpu.numa_maps
        cat /proc/$pid/task/*/status >$DIR/$cpu.status
    done
}

# A cpuset of these cpus and this NUMA node. A process that enters has its pages moved there, and its
# memory policy with them.
cpuset() {
    mkdir $GROUPS_DIR/$1
    echo $2 >$GROUPS_DIR/$1/cpuset.cpus
    echo $3 >$GROUPS_DIR/$1/cpuset.mems
}

phase topo
wideload topo --json >$DIR/topo.json

# A run that goes on until it is told to end, and so calm that there is time to look.
phase held
timeout 110 wideload run ycsb:a $PLACES --records 800 --warm 0s --duration 100s --throttle 200/s \
    --interval 100ms --out run --json >$DIR/run.json 2>$DIR/run.err &
RUN=$!
# It measures when its first intervals are there.
tries=500
while [ "$(stat -c %s run/trial-0001/latency.hlog 2>/dev/null || echo 0)" -lt 500 ]; do
    sleep 0.1
    tries=$((tries - 1))
    [ $tries = 0 ] && break
done
look

phase moved
# The memory of the first instance: into a cpuset of NUMA node 5 and out again. Then its policy is
# what it was, and its pages are not.
pid=$(instance_on 0)
cpuset away 0 5
echo $pid >$GROUPS_DIR/away/cgroup.procs
echo $pid >$GROUPS_DIR/cgroup.procs
taskset -apc 0 $pid >/dev/null
# All threads of the fourth one may use a cpu more.
taskset -apc 6-7 $(instance_on 6) >/dev/null
# One thread of the sixth one, its last, is on another NUMA node.
pid=$(instance_on 10)
for thread in /proc/$pid/task/*; do last=${thread##*/}; done
taskset -pc 2 $last >/dev/null
look
# As Ctrl-C does: what was measured until then is its result.
kill -INT $RUN
wait $RUN
echo $? >$DIR/run.status
cp run/trial-0001/manifest.json /tmp/out/held/run.* $DIR
rm -rf run

# The memory of the fourth instance is bound elsewhere while rows are loaded.
phase refused
timeout 110 wideload run ycsb:a $PLACES --records 3k --ops 800 --warm 0s --out run --json \
    >$DIR/run.json 2>$DIR/run.err &
RUN=$!
cpuset bound 6 5
tries=300
while pid=$(instance_on 6) && [ -z "$pid" ]; do
    sleep 0.1
    tries=$((tries - 1))
    [ $tries = 0 ] && break
done
echo $pid >$GROUPS_DIR/bound/cgroup.procs
wait $RUN
echo $? >$DIR/run.status
cp run/manifest.json $DIR
rm -rf run
instance_on '*' >$DIR/left

phase scale
timeout 110 wideload scale --layouts single,per-package,per-numa --repetitions 1 --records 400 \
    --client-cpus 1,3,5,7,9,11,13,15 --warm 100ms --duration 500ms --threads 16 --out run --json \
    >$DIR/outcome.json 2>$DIR/run.err
echo $? >$DIR/run.status
cat run/experiment.toml >$DIR/experiment.toml
for trial in 1 2 3; do cp run/trial-000$trial/manifest.json $DIR/manifest-$trial.json; done

phase done
stty -F /dev/ttyS1 raw
tar -cz -C /tmp/out . >/dev/ttyS1
poweroff -f
