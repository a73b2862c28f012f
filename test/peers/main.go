// Command peers measures the processor time of a check, of the whole process: vokter-stream, a bare
// client that asks for the same pages at the same pace, and other programs that watch pages. All of them
// ask a server in this process for pages of 8 KB that do not change and answer 304. It needs Linux.
//
//	go run ./test/peers
//	go run ./test/peers --pages 1000 --urlwatch PATH --changedetection PATH
//	go run ./test/peers --pages 1000 --validators=false # equal bodies instead of 304
//	go run ./test/peers --pages 1000 --changed 10       # every tenth answer is a new version
//
// The paths are those of the programs after pip install urlwatch changedetection.io.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// measurement says what is measured.
type measurement struct {
	dir  string // a directory for the files of a program
	site *site
	// pages is how many pages are watched, and rate how many checks a second those programs make that
	// have a schedule. Window is how long each is measured.
	pages  int
	rate   float64
	window time.Duration
}

// interval is how often each page is checked.
func (m measurement) interval() time.Duration {
	return time.Duration(float64(m.pages) / m.rate * float64(time.Second))
}

// cost is what a number of checks took.
type cost struct {
	checks  int64
	elapsed time.Duration
	cpu     time.Duration
	written int64 // bytes that reached the disk; -1 if that is not known
}

// program is one that is measured.
type program struct {
	name string
	run  func(ctx context.Context, m measurement) (cost, error)
}

func main() {
	pages := flag.String("pages", "1000,10000", "how many pages are watched: numbers separated by commas")
	rate := flag.Float64("rate", 1000, "checks a second, of the programs that have a schedule")
	window := flag.Duration("for", time.Minute, "how long each program is measured, after two checks of each page")
	validators := flag.Bool("validators", true, "pages have an ETag, so that an unchanged one answers 304; otherwise it answers with its body")
	changed := flag.Int64("changed", 0, "how many of 100 answers are a new version of their page, at most 50")
	binary := flag.String("vokter", "", "the vokter-stream to measure, instead of building one")
	urlwatch := flag.String("urlwatch", "", "path of urlwatch")
	changedetection := flag.String("changedetection", "", "path of changedetection.io")
	bare := flag.String("bare", "", "the `URL` of the pages to request as the bare client; the command starts itself with it")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	numbers, err := numbersIn(*pages)
	switch {
	case err != nil:
	case *rate <= 0 || *window <= 0:
		err = errors.New("--rate and --for must be positive")
	case *changed < 0 || *changed > 50:
		err = errors.New("--changed must be between 0 and 50")
	case *bare != "":
		err = ask(ctx, *bare, numbers[0], *rate)
	case runtime.GOOS != "linux":
		err = errors.New("the processor time of other processes is read from /proc, which only Linux has")
	default:
		programs := []program{{"bare client", bareClient}, {"vokter-stream", vokterStream(*binary)}}
		if *urlwatch != "" {
			programs = append(programs, program{"urlwatch", runUrlwatch(*urlwatch)})
		}
		if *changedetection != "" {
			programs = append(programs, program{"changedetection.io", runChangedetection(*changedetection)})
		}
		m := measurement{site: newSite(*validators, *changed), rate: *rate, window: *window}
		defer m.site.Close()
		err = compare(ctx, programs, numbers, m)
	}
	if err != nil && ctx.Err() == nil {
		fmt.Fprintln(os.Stderr, "peers:", err)
		os.Exit(1)
	}
}

// numbersIn parses numbers of pages.
func numbersIn(list string) (numbers []int, err error) {
	for s := range strings.SplitSeq(list, ",") {
		n, err := strconv.Atoi(strings.TrimSpace(s))
		if err != nil || n < 1 {
			return nil, fmt.Errorf("--pages: %q is not a number of pages", s)
		}
		numbers = append(numbers, n)
	}
	return numbers, nil
}

// compare measures the programs one after the other with each number of pages, and prints a table.
func compare(ctx context.Context, programs []program, numbers []int, m measurement) error {
	fmt.Printf("%g checks a second where there is a schedule, over %v.\n\n", m.rate, m.window)
	fmt.Println("| program | pages | checks a second | processor time of a check | beside the bare client | bytes written by a check |")
	fmt.Println("|---|---|---|---|---|---|")
	for _, m.pages = range numbers {
		var bare float64
		for _, p := range programs {
			c, err := measure(ctx, p, m)
			if err != nil {
				return fmt.Errorf("%s with %d pages: %w", p.name, m.pages, err)
			}
			each := float64(c.cpu.Microseconds()) / float64(c.checks)
			if bare == 0 {
				bare = each
			}
			written := "not known"
			if c.written >= 0 {
				written = fmt.Sprint(c.written / c.checks)
			}
			fmt.Printf("| %s | %d | %.0f | %.3f ms | %.1f | %s |\n", p.name, m.pages, float64(c.checks)/c.elapsed.Seconds(), each/1000, each/bare, written)
		}
	}
	return nil
}

func measure(ctx context.Context, p program, m measurement) (cost, error) {
	var err error
	if m.dir, err = os.MkdirTemp("", "peers"); err != nil {
		return cost{}, err
	}
	defer os.RemoveAll(m.dir)
	m.site.reset(m.pages)
	c, err := p.run(ctx, m)
	if err == nil && c.checks == 0 {
		err = fmt.Errorf("it made no check in %v", m.window)
	}
	return c, err
}
