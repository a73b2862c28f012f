// Command peers measures what a check of an unchanged page costs, through vokter-stream and through
// other programs that watch pages. It serves pages of 8 KB that answer 304 to a conditional request,
// lets each program read all of them once, and then measures the processor time of the whole process,
// user and system, over some further passes. It prints one row of a Markdown table for each program
// and number of pages.
//
// The programs are not part of this module. Install those that you want to compare, for example
//
//	python3 -m venv peers && peers/bin/pip install urlwatch changedetection.io
//	go run ./test/peers --urlwatch peers/bin/urlwatch --changedetection peers/bin/changedetection.io
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

type options struct {
	pages                             []int
	passes                            int
	vokter, urlwatch, changedetection string
}

func main() {
	var o options
	pages := flag.String("pages", "1000,10000", "numbers of pages, separated by commas")
	flag.IntVar(&o.passes, "passes", 3, "how often each page is checked while the time is measured")
	flag.StringVar(&o.vokter, "vokter", "", "a binary of cmd/vokter-stream, instead of building one")
	flag.StringVar(&o.urlwatch, "urlwatch", "", "the program urlwatch; without it there is no such row")
	flag.StringVar(&o.changedetection, "changedetection", "", "the program changedetection.io; without it there is no such row")
	flag.Parse()
	if err := o.parse(*pages); err != nil {
		fmt.Fprintln(os.Stderr, "peers:", err)
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := compare(ctx, o); err != nil {
		fmt.Fprintln(os.Stderr, "peers:", err)
		os.Exit(1)
	}
}

func (o *options) parse(pages string) error {
	if o.passes < 1 {
		return errors.New("--passes must be at least 1")
	}
	for _, s := range strings.Split(pages, ",") {
		n, err := strconv.Atoi(s)
		if err != nil || n < 1 {
			return fmt.Errorf("--pages: %q is not a number of pages", s)
		}
		o.pages = append(o.pages, n)
	}
	return nil
}

// compare measures all programs with each number of pages.
func compare(ctx context.Context, o options) error {
	root, err := os.MkdirTemp("", "peers")
	if err != nil {
		return err
	}
	defer os.RemoveAll(root)
	if o.vokter == "" {
		o.vokter = filepath.Join(root, "vokter-stream")
		if b, err := exec.CommandContext(ctx, "go", "build", "-o", o.vokter, "github.com/vokter/vokter/cmd/vokter-stream").CombinedOutput(); err != nil {
			return fmt.Errorf("building: %w\n%s", err, b)
		}
	}
	s, err := newSite()
	if err != nil {
		return err
	}
	defer s.close()
	fmt.Println("| program | pages | processor time of a check | time of a pass | answers 304, 200 |")
	fmt.Println("|---|---|---|---|---|")
	for _, p := range o.programs() {
		for _, n := range o.pages {
			r, err := measure(ctx, s, p, n, o.passes, filepath.Join(root, fmt.Sprint(p.name, n)))
			if err != nil {
				return fmt.Errorf("%s with %d pages: %w", p.name, n, err)
			}
			fmt.Println(r)
		}
	}
	return nil
}

// result is what some passes of a program over its pages cost.
type result struct {
	name           string
	pages, passes  int
	cpu, took      time.Duration
	unchanged, all int // answers
}

func (r result) String() string {
	checks := r.pages * r.passes
	return fmt.Sprintf("| %s | %d | %.2f ms | %.1f s | %d, %d |", r.name, r.pages,
		r.cpu.Seconds()*1000/float64(checks), r.took.Seconds()/float64(r.passes), r.unchanged, r.all-r.unchanged)
}

// measure lets p read the pages once, and measures further passes.
func measure(ctx context.Context, s *site, p program, pages, passes int, dir string) (result, error) {
	r := result{name: p.name, pages: pages, passes: passes}
	if err := os.Mkdir(dir, 0o700); err != nil {
		return r, err
	}
	urls := make([]string, pages)
	for n := range urls {
		urls[n] = s.url(n)
	}
	first, err := p.first(dir, urls)
	if err != nil {
		return r, err
	}
	if _, err := run(ctx, first); err != nil {
		return r, err
	}
	if _, all := s.count(); all < pages {
		return r, fmt.Errorf("only %d requests came in the first pass", all)
	}
	began := time.Now()
	for _, args := range p.again(dir, passes) {
		cpu, err := run(ctx, args)
		if err != nil {
			return r, err
		}
		r.cpu += cpu
	}
	r.took = time.Since(began)
	if r.unchanged, r.all = s.count(); r.all < pages*passes {
		return r, fmt.Errorf("only %d requests came in %d passes", r.all, passes)
	}
	return r, nil
}

// run runs a command to its end and returns the processor time of it and of what it started.
func run(ctx context.Context, c command) (time.Duration, error) {
	cmd := exec.CommandContext(ctx, c.args[0], c.args[1:]...)
	cmd.Env = append(os.Environ(), c.env...)
	if b, err := cmd.CombinedOutput(); err != nil {
		return 0, fmt.Errorf("%s: %w\n%s", c.args[0], err, b[max(0, len(b)-2000):])
	}
	return cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime(), nil
}
