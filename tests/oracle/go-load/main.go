// go-load FOLDER: works for a moment and writes the CPU, heap, goroutine and mutex profiles of that
// into FOLDER, so that tests have profiles of Go's own making: inlined calls, labels, delta types.
package main

import (
	"context"
	"os"
	"path/filepath"
	"runtime"
	"runtime/pprof"
	"sort"
	"strings"
	"sync"
	"time"
)

var kept [][]byte

func work(until time.Time, name string) int {
	total := 0
	for time.Now().Before(until) {
		words := strings.Fields(strings.Repeat("the quick brown fox ", 500))
		sort.Strings(words)
		kept = append(kept[max(0, len(kept)-200):], []byte(strings.Join(words, name)))
		total += recurse(len(words)%17 + 3)
	}
	return total
}

func recurse(n int) int {
	if n < 2 {
		return n
	}
	return recurse(n-1) + recurse(n-2)
}

func write(folder, kind string) {
	file, err := os.Create(filepath.Join(folder, kind+".pb.gz"))
	if err != nil {
		panic(err)
	}
	if err := pprof.Lookup(kind).WriteTo(file, 0); err != nil {
		panic(err)
	}
	file.Close()
}

func main() {
	folder := os.Args[1]
	runtime.MemProfileRate = 4096
	runtime.SetMutexProfileFraction(1)
	file, err := os.Create(filepath.Join(folder, "cpu.pb.gz"))
	if err != nil {
		panic(err)
	}
	if err := pprof.StartCPUProfile(file); err != nil {
		panic(err)
	}
	until := time.Now().Add(700 * time.Millisecond)
	var group sync.WaitGroup
	var lock sync.Mutex
	for _, name := range []string{"one", "two"} {
		group.Add(1)
		go pprof.Do(context.Background(), pprof.Labels("worker", name), func(context.Context) {
			defer group.Done()
			for time.Now().Before(until) {
				lock.Lock()
				work(time.Now().Add(20*time.Millisecond), name)
				lock.Unlock()
			}
		})
	}
	group.Wait()
	pprof.StopCPUProfile()
	file.Close()
	for _, kind := range []string{"heap", "allocs", "goroutine", "mutex"} {
		write(folder, kind)
	}
}
