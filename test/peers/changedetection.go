package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// runChangedetection measures changedetection.io. A first run of it takes the list of pages by its API, a
// second one with another schedule is measured.
func runChangedetection(path string) func(context.Context, measurement) (cost, error) {
	return func(ctx context.Context, m measurement) (cost, error) {
		d := detector{path: path, dir: m.dir}
		var err error
		if d.addr, err = freeAddress(ctx); err != nil {
			return cost{}, err
		}
		if err := d.prepare(ctx, m); err != nil {
			return cost{}, fmt.Errorf("giving it the pages: %w", err)
		}
		cmd, err := d.command(ctx)
		if err != nil {
			return cost{}, err
		}
		return steady(ctx, m, cmd)
	}
}

// detector is a changedetection.io with its files.
type detector struct{ path, dir, addr string }

func (d detector) command(ctx context.Context) (*exec.Cmd, error) {
	host, port, err := net.SplitHostPort(d.addr)
	cmd := command(ctx, d.path, "-C", "-d", d.dir, "-h", host, "-p", port, "-l", "ERROR")
	cmd.Env = append(os.Environ(), "ALLOW_IANA_RESTRICTED_ADDRESSES=true", "MINIMUM_SECONDS_RECHECK_TIME=0", fmt.Sprint("FETCH_WORKERS=", connections))
	return cmd, err
}

// prepare makes the files of d with all pages, each checked again after the interval of m.
func (d detector) prepare(ctx context.Context, m measurement) error {
	cmd, err := d.command(ctx)
	if err != nil {
		return err
	}
	p, err := start(cmd)
	if err != nil {
		return err
	}
	defer p.end()
	file := filepath.Join(d.dir, "changedetection.json")
	var settings map[string]any
	for settings == nil || !d.listens(ctx) {
		if err := p.wait(ctx, poll); err != nil {
			return err
		}
		if b, err := os.ReadFile(file); err == nil {
			_ = json.Unmarshal(b, &settings) // it may be half written
		}
	}
	token, err := member[string](settings, "settings", "application", "api_access_token")
	if err != nil {
		return err
	}
	for first := 0; first < m.pages; first += 1000 {
		if err := d.add(ctx, m, token, first, min(first+1000, m.pages)); err != nil {
			return err
		}
	}
	for list, _ := filepath.Glob(filepath.Join(d.dir, "*", "watch.json")); len(list) < m.pages; list, _ = filepath.Glob(filepath.Join(d.dir, "*", "watch.json")) {
		if err := p.wait(ctx, poll); err != nil {
			return err
		}
	}
	p.end()
	between, err := member[map[string]any](settings, "settings", "requests", "time_between_check")
	if err != nil {
		return err
	}
	clear(between)
	between["seconds"] = max(1, int(m.interval().Seconds()))
	b, err := json.Marshal(settings)
	if err != nil {
		return err
	}
	m.site.reset(m.pages)
	return os.WriteFile(file, b, 0o600)
}

// add adds the pages from a number to before another.
func (d detector) add(ctx context.Context, m measurement, token string, from, to int) error {
	var list strings.Builder
	for i := from; i < to; i++ {
		fmt.Fprintln(&list, m.site.page(i))
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+d.addr+"/api/v1/import", strings.NewReader(list.String()))
	if err != nil {
		return err
	}
	r.Header.Set("X-Api-Key", token)
	r.Header.Set("Content-Type", "text/plain")
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if res.StatusCode/100 != 2 {
		return fmt.Errorf("the API answered %s", res.Status)
	}
	return nil
}

// listens reports whether the program accepts connections.
func (d detector) listens(ctx context.Context) bool {
	c, err := new(net.Dialer).DialContext(ctx, "tcp", d.addr)
	if err != nil {
		return false
	}
	_ = c.Close()
	return true
}

// freeAddress returns an address of this machine at which nothing listens.
func freeAddress(ctx context.Context) (string, error) {
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return l.Addr().String(), l.Close()
}

// member returns a value below nested objects.
func member[T any](v any, names ...string) (t T, err error) {
	for _, name := range names {
		object, _ := v.(map[string]any)
		v = object[name]
	}
	t, ok := v.(T)
	if !ok {
		return t, fmt.Errorf("its settings have no %s: its version is not known here", strings.Join(names, "."))
	}
	return t, nil
}
