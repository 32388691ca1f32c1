// A small program that keeps a processor and the heap busy under Pyroscope's agent for Go, until it
// has sent what it saw: profiled SERVER TOKEN SERVICE
package main

import (
	"fmt"
	"log"
	"os"
	"syscall"
	"time"

	"github.com/grafana/pyroscope-go"
)

var kept [][]byte

func processorTime() time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		log.Fatal(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

//go:noinline
func burnTime(duration time.Duration) (sum int) {
	for end := processorTime() + duration; processorTime() < end; {
		for i := 0; i < 1e6; i++ {
			sum += i * i
		}
	}
	return sum
}

//go:noinline
func keepMemory(count int) {
	for i := 0; i < count; i++ {
		kept = append(kept, make([]byte, 64<<10))
	}
}

func main() {
	profiler, err := pyroscope.Start(pyroscope.Config{
		ApplicationName:   os.Args[3],
		ServerAddress:     os.Args[1],
		BasicAuthUser:     "anyone",
		BasicAuthPassword: os.Args[2],
		Tags:              map[string]string{"region": "eu"},
		UploadRate:        500 * time.Millisecond,
		Logger:            pyroscope.StandardLogger,
	})
	if err != nil {
		log.Fatal(err)
	}
	keepMemory(1000)
	burnTime(time.Second)
	profiler.Flush(true)
	if err := profiler.Stop(); err != nil {
		log.Fatal(err)
	}
	fmt.Println(len(kept))
}
