package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// vokterStream measures the binary, or one that it builds if binary is empty.
func vokterStream(binary string) func(context.Context, measurement) (cost, error) {
	return func(ctx context.Context, m measurement) (cost, error) {
		path := binary
		if path == "" {
			path = filepath.Join(m.dir, "vokter-stream")
			build := exec.CommandContext(ctx, "go", "build", "-o", path, "github.com/vokter/vokter/cmd/vokter-stream")
			build.Stderr = os.Stderr
			build.Env = append(os.Environ(), "CGO_ENABLED=0") // as released, whatever builds the test
			if err := build.Run(); err != nil {
				return cost{}, err
			}
		}
		var b strings.Builder
		fmt.Fprintf(&b, "allow: {fetch: [127.0.0.0/8]}\nfetch: {min_interval: 1s, per_host: {concurrency: %d, rate: 100000/s}}\n", connections)
		fmt.Fprintf(&b, "sinks: {out: {stdout: {}}}\nsubscriptions:\n")
		for i := range m.pages {
			fmt.Fprintf(&b, "- {url: %q, keywords: [unheard], interval: %v, sinks: [out]}\n", m.site.page(i), m.interval())
		}
		file := filepath.Join(m.dir, "vokter.yaml")
		if err := os.WriteFile(file, []byte(b.String()), 0o600); err != nil {
			return cost{}, err
		}
		return steady(ctx, m, command(ctx, path, "run", "-c", file, "--data", filepath.Join(m.dir, "data")))
	}
}
