// Command vokter-stream watches web pages for keywords and tells who wants to know.
// Its verbs are listed by vokter-stream --help.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
	_ "time/tzdata" // for containers that have no time zones

	"github.com/vokter/vokter/internal/memory"
)

func main() {
	memory.Heed()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)         // a second signal ends the process at once
	var hangups chan os.Signal           // nil: they are ignored
	if !signal.Ignored(syscall.SIGHUP) { // as it is under nohup
		hangups = make(chan os.Signal, 1)
		signal.Notify(hangups, syscall.SIGHUP)
	}
	os.Exit(Run(ctx, hangups, os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}
