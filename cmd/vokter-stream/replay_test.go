package main

import (
	"context"
	"testing"

	"github.com/vokter/vokter"
)

// TestUnhandledMessagesAreShown: they cannot be replayed, and are listed all the same.
func TestUnhandledMessagesAreShown(t *testing.T) {
	s := newSetup(t, "")
	bad := vokter.Pushed{URL: s.page.URL, ContentType: "application/x-none", Body: []byte("x")}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	r, err := vokter.New(vokter.Config{Dir: s.data, Sources: map[string]vokter.Source{
		"crawler": vokter.SourceFunc(func(ctx context.Context, emit vokter.Emit) error {
			defer cancel()
			return emit(ctx, bad)
		}),
	}})
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Run(ctx); err != nil || r.Summary().Unhandled != 1 {
		t.Fatalf("got %+v, %v, want a message that could not be handled", r.Summary(), err)
	}
	expect(t, 0, "1 message could not be handled, and cannot be replayed", "replay", "-c", s.config, "--dry-run")
	expect(t, 0, s.page.URL, "replay", "-c", s.config, "--dry-run", "--url", s.page.URL)
	expect(t, 0, "no such dead letter", "replay", "-c", s.config, "--dry-run", "--sink", "out")
	found := objects(t, vs(t, "replay", "-c", s.config, "--dry-run", "--format", "json"))
	if len(found["unhandled"]) != 1 || len(found["dead_letter"]) != 0 {
		t.Errorf("got %v", found)
	}
}
