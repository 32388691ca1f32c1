#!/bin/busybox sh
# shellcheck shell=dash
# The first process of the virtual machine that tests/kernels/run.py starts: runs each case of
# /cases and prints the results on the console, files as base64 between lines that run.py
# recognizes.
export PATH=/bin HOME=/tmp
/bin/busybox --install -s /bin
mkdir -p /proc /sys /dev /tmp /out
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t tmpfs tmpfs /tmp
mount -t devtmpfs dev /dev

print_file() { # NAME FILE
    echo "@file $1"
    base64 <"$2"
    echo "@end $1"
}

ulimit -c 0
perfolio-agent doctor >/out/doctor 2>&1
print_file doctor /out/doctor

grep -m 1 -i -E '^(flags|Features)' /proc/cpuinfo >/out/processor
print_file processor /out/processor

while IFS='|' read -r expected arguments; do
    # shellcheck disable=SC2086  # the arguments are split on purpose
    unwind_replay 100 "$expected" plain $arguments 2>&1
done </replays >/out/replays
print_file replays /out/replays

while IFS='|' read -r name options arguments; do
    # shellcheck disable=SC2086  # options and arguments are split on purpose
    truth $arguments &
    pid=$!
    sleep 1
    # shellcheck disable=SC2086
    perfolio record $options -p $pid -d 3 -F 99 -o "/out/$name" >"/out/log" 2>&1
    echo "status $?" >>/out/log
    kill -9 $pid
    wait $pid 2>/dev/null
    [ -f "/out/$name" ] && print_file "$name.pb.gz" "/out/$name"
    print_file "$name.log" /out/log
done </cases

truth deep 25 &
pid=$!
perfolio-agent --aggregate=kernel --offline-dir=/out/spool --interval=1 --frequency=99 \
    >/out/log 2>&1 &
agent=$!
# run.py stops a virtual machine in which this takes too long.
until grep -q 'msg="sampling"' /out/log; do sleep 1; done
sleep 6
kill -TERM $agent
wait $agent
echo "status $?" >>/out/log
kill -9 $pid
echo "batches $(find /out/spool -name '*.otlp.zst' | wc -l)" >>/out/log
print_file agent.log /out/log
dmesg >/out/dmesg
print_file dmesg /out/dmesg
echo "@done"
poweroff -f
