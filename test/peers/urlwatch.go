package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// runUrlwatch measures urlwatch, which has no schedule: cron starts it for each check of all pages.
func runUrlwatch(path string) func(context.Context, measurement) (cost, error) {
	return func(ctx context.Context, m measurement) (c cost, err error) {
		var jobs strings.Builder
		for i := range m.pages {
			fmt.Fprintf(&jobs, "---\nurl: %q\n", m.site.page(i))
		}
		urls, config := filepath.Join(m.dir, "urls.yaml"), filepath.Join(m.dir, "urlwatch.yaml")
		if err := os.WriteFile(urls, []byte(jobs.String()), 0o600); err != nil {
			return c, err
		}
		if err := os.WriteFile(config, []byte("report: {stdout: {enabled: true}}\n"), 0o600); err != nil {
			return c, err
		}
		pass := func() (time.Duration, error) {
			cmd := exec.CommandContext(ctx, path, "--urls", urls, "--config", config, "--cache", filepath.Join(m.dir, "cache.db"), "--hooks", filepath.Join(m.dir, "hooks.py"))
			var log bytes.Buffer
			cmd.Stdout, cmd.Stderr = &log, &log
			if err := cmd.Run(); err != nil {
				return 0, fmt.Errorf("%w\n%s", err, tail(log.String()))
			}
			return cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime(), nil
		}
		for range 2 {
			if _, err := pass(); err != nil {
				return c, err
			}
		}
		c.written = -1
		answers, began := m.site.answers.Load(), time.Now()
		for c.cpu == 0 || time.Since(began) < m.window {
			cpu, err := pass()
			if err != nil {
				return c, err
			}
			c.cpu += cpu
		}
		c.checks, c.elapsed = m.site.answers.Load()-answers, time.Since(began)
		return c, nil
	}
}
