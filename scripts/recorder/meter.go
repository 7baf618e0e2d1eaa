// The CPU time of a scheduling cycle.

package main

import (
	"runtime"
	"syscall"
	"time"
)

// meter measures the CPU time of this process while it runs. What the recorder
// does besides the cycle (building the cache, computing raw scores again)
// happens while it is paused. A nil meter measures nothing.
type meter struct {
	total, since time.Duration
	running      bool
}

// newMeter collects garbage first: the cycle must not pay for the case's JSON.
func newMeter() *meter {
	runtime.GC()
	return &meter{}
}

func (m *meter) run() {
	if m != nil && !m.running {
		m.running, m.since = true, cpuTime()
	}
}

func (m *meter) pause() {
	if m != nil && m.running {
		m.running = false
		m.total += cpuTime() - m.since
	}
}

func (m *meter) seconds() float64 {
	m.pause()
	return m.total.Seconds()
}

func cpuTime() time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		return 0
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
