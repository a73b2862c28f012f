// Command campaign kills the real binary at random moments and proves that nothing
// was lost: a page server records which versions a completed answer delivered, a
// receiver records what arrives, and an oracle that imports nothing of this module
// compares the two. It prints its seed and figures, and exits 1 if anything was lost
// or wrong.
package main

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"
)

type options struct {
	kills    int
	duration time.Duration
	seed     uint64
	pages    int
	tags     string
	binary   string
	verbose  bool
}

func main() {
	var o options
	flag.IntVar(&o.kills, "kills", 30, "how many times the process is killed")
	flag.DurationVar(&o.duration, "duration", 0, "kill until this much time has passed, instead of -kills")
	flag.Uint64Var(&o.seed, "seed", 1, "seed of all that is random here")
	flag.IntVar(&o.pages, "pages", 20, "pages that are watched")
	flag.StringVar(&o.tags, "tags", buildTags, "build tags of the binary")
	flag.StringVar(&o.binary, "binary", "", "a built binary, instead of building one")
	flag.BoolVar(&o.verbose, "v", false, "show what the process logs")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	code, err := campaign(ctx, o)
	if err != nil {
		fmt.Fprintln(os.Stderr, "campaign:", err)
		code = 1
	}
	os.Exit(code)
}

// campaign runs the process under kills and returns the exit code.
func campaign(ctx context.Context, o options) (int, error) {
	dir, err := os.MkdirTemp("", "campaign")
	if err != nil {
		return 1, err
	}
	defer os.RemoveAll(dir)
	if o.binary == "" {
		o.binary = filepath.Join(dir, "vokter-stream")
		if err := build(ctx, o.binary, o.tags); err != nil {
			return 1, err
		}
	}
	dice := rand.New(rand.NewPCG(o.seed, 0))
	pages, err := newPages(o.pages, o.seed)
	if err != nil {
		return 1, err
	}
	defer pages.close()
	inbox, err := newInbox(o.seed, []string{"a", "b"})
	if err != nil {
		return 1, err
	}
	defer inbox.close()
	config := filepath.Join(dir, "campaign.yaml")
	if err := writeConfig(config, pages, inbox); err != nil {
		return 1, err
	}
	p := process{binary: o.binary, config: config, data: filepath.Join(dir, "data"), verbose: o.verbose}

	began, kills := time.Now(), 0
	for ctx.Err() == nil && (o.duration > 0 && time.Since(began) < o.duration || o.duration == 0 && kills < o.kills) {
		lifetime := 50*time.Millisecond + time.Duration(dice.Int64N(int64(700*time.Millisecond)))
		if err := p.killAfter(ctx, lifetime); err != nil {
			return 1, err
		}
		kills++
	}
	if ctx.Err() != nil {
		return 1, ctx.Err()
	}
	// The last life: no page changes any more, and all that was seen must arrive.
	pages.freeze()
	inbox.heal()
	if err := p.runUntil(ctx, func() bool { return settled(pages, inbox) }, time.Minute); err != nil {
		return 1, err
	}
	v := judge(pages.record(), inbox.record())
	for _, line := range v.details {
		fmt.Println(line)
	}
	fmt.Printf("seed=%d kills=%d pages=%d versions=%d notifications=%d repeats=%d lost=%d wrong=%d\n",
		o.seed, kills, o.pages, v.versions, v.notifications, v.repeats, v.lost, v.wrong)
	if v.lost > 0 || v.wrong > 0 {
		return 1, nil
	}
	if v.notifications == 0 {
		return 1, fmt.Errorf("nothing was notified, so nothing was tested")
	}
	return 0, nil
}
