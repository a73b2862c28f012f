package main

import (
	"os"
	"runtime"
	"testing"
	"time"

	"github.com/vokter/vokter/internal/cli"
)

// asProgram in the environment makes the test binary vokter-stream.
const asProgram = "VOKTER_PEERS_TEST_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		os.Exit(cli.Main(nil))
	}
	os.Exit(m.Run())
}

// TestMeasure measures the program of this repository for a moment: its checks must be answered by 304.
func TestMeasure(t *testing.T) {
	switch {
	case testing.Short():
		t.Skip("it takes some seconds")
	case runtime.GOOS != "linux":
		t.Skip("it reads /proc")
	}
	m := measurement{site: newSite(true, 0), pages: 20, rate: 20, window: time.Second}
	defer m.site.Close()
	t.Setenv(asProgram, "1")
	c, err := measure(t.Context(), program{"vokter-stream", vokterStream(os.Args[0])}, m)
	if err != nil {
		t.Fatal(err)
	}
	if c.checks == 0 || c.cpu < 0 || m.site.full.Load() != 20 {
		t.Errorf("%d checks in %v of processor time, %d of them with a body; want some, and 20 with a body", c.checks, c.cpu, m.site.full.Load())
	}
}
