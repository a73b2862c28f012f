package memory

import (
	"os"
	"os/exec"
	"strings"
	"testing"
)

// TestAddressSpace runs the test's program again under ulimit -v: what is left is less than the
// limit, and most of it.
func TestAddressSpace(t *testing.T) {
	if os.Getenv("MEMORY_LIMITED") != "" {
		const limit = 8_000_000 << 10
		if n := Limit(); n <= 1<<30 || n >= limit {
			t.Errorf("%d bytes of %d are left", n, limit)
		}
		if n := addressSpace(); n >= limit {
			t.Errorf("%d bytes of address space of %d are left", n, limit)
		}
		return
	}
	cmd := exec.Command("sh", "-c", `ulimit -v 8000000 && exec "$0" -test.run '^TestAddressSpace$' -test.v`, os.Args[0])
	cmd.Env = append(os.Environ(), "MEMORY_LIMITED=1")
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "--- PASS") {
		t.Fatalf("%v\n%s", err, out)
	}
}
