package main

import (
	"runtime"
	"testing"
	"time"
)

// TestMeasure measures the program of this repository for a moment: its checks must be answered by 304.
func TestMeasure(t *testing.T) {
	switch {
	case testing.Short():
		t.Skip("it builds the binary")
	case runtime.GOOS != "linux":
		t.Skip("it reads /proc")
	}
	m := measurement{site: newSite(true, 0), pages: 20, rate: 20, window: time.Second}
	defer m.site.Close()
	c, err := measure(t.Context(), program{"vokter-stream", vokterStream("")}, m)
	if err != nil {
		t.Fatal(err)
	}
	if c.checks == 0 || c.cpu < 0 || m.site.full.Load() != 20 {
		t.Errorf("%d checks in %v of processor time, %d of them with a body; want some, and 20 with a body", c.checks, c.cpu, m.site.full.Load())
	}
}
