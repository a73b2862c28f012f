package vokter_test

import (
	"bufio"
	"context"
	"fmt"
	"log"
	"strings"

	"github.com/vokter/vokter"
	"github.com/vokter/vokter/pipeline"
)

// tickets is a source of one's own: it hands over the lines of a feed, one after the other,
// and goes on behind the last one that was taken.
type tickets struct{ feed *bufio.Scanner }

func (t tickets) Run(ctx context.Context, emit pipeline.Emit) error {
	for n := 1; t.feed.Scan(); n++ {
		page := pipeline.Pushed{
			URL:  "https://tickets.example/42", // names the page; nothing is fetched
			Text: t.feed.Text(),
			ID:   fmt.Sprint(n), // what comes twice counts once
		}
		if err := emit(ctx, page); err != nil {
			return err // not acknowledged: it comes again
		}
	}
	return t.feed.Err() // nil: there is nothing more
}

// A source hands over pages that are not fetched: what changes between two of them is told as
// for any other page.
func Example_source() {
	feed := strings.NewReader("Status: open\nStatus: waiting for parts\n")
	ctx, stop := context.WithCancel(context.Background())
	r, err := vokter.New(vokter.Config{
		Sources: map[string]pipeline.Source{"tickets": tickets{bufio.NewScanner(feed)}},
		Sinks: map[string]pipeline.Sink{"log": pipeline.SinkFunc(func(_ context.Context, n pipeline.Notification) error {
			fmt.Println(n.URL, n.Diffs[0].Event, n.Diffs[0].Keyword)
			stop()
			return nil
		})},
		Subscriptions: []pipeline.Subscription{{
			URL: "https://tickets.example/42", Keywords: []string{"waiting"}, Sinks: []string{"log"},
			Interval: pipeline.Never, // it is only pushed
		}},
	})
	if err != nil {
		log.Fatal(err)
	}
	if err := r.Run(ctx); err != nil {
		log.Fatal(err)
	}
	// Output: https://tickets.example/42 added waiting
}
