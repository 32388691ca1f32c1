// go-pprof FILE: how fast google/pprof reads a file, in raw bytes per CPU second of the process
// (collector and all), best and median of the runs: "best_mb_s,median_mb_s". The file is expanded
// before, as bench_pprof does, so that both measure decoding alone.
package main

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"os"
	"sort"
	"syscall"
	"time"

	"github.com/google/pprof/profile"
)

const (
	runsMin = 15
	runsMax = 400
	budget  = 2 * time.Second
)

func cpuTime() time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		panic(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

func readRaw(path string) ([]byte, error) {
	data, err := os.ReadFile(path)
	if err != nil || len(data) < 2 || data[0] != 0x1f || data[1] != 0x8b {
		return data, err
	}
	reader, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	return io.ReadAll(reader)
}

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: go-pprof FILE")
		os.Exit(2)
	}
	raw, err := readRaw(os.Args[1])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	var times []time.Duration
	var total time.Duration
	for len(times) < runsMax && (len(times) < runsMin || total < budget) {
		start := cpuTime()
		if _, err := profile.Parse(bytes.NewReader(raw)); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		times = append(times, cpuTime()-start)
		total += times[len(times)-1]
	}
	sort.Slice(times, func(i, j int) bool { return times[i] < times[j] })
	rate := func(d time.Duration) float64 { return float64(len(raw)) / 1e6 / d.Seconds() }
	fmt.Printf("%.1f,%.1f\n", rate(times[0]), rate(times[len(times)/2]))
}
