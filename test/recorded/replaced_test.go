package recorded

import (
	"context"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/vokter/vokter"
	"github.com/vokter/vokter/pipeline"
)

// TestReplaced replays every page, whole and in the part that the curators chose, with and without
// replaced: true. It must withhold no version of these pages except shells.
func TestReplaced(t *testing.T) {
	dir := corpusDir(t)
	all := declarations(t, dir)
	for _, name := range pageNames(t, dir) {
		if !strings.Contains(name, *onlyNames) {
			continue
		}
		t.Run(name, func(t *testing.T) {
			r := loadRecording(t, dir, name, *versions, *stride)
			for part, view := range map[string]pipeline.View{"whole": {}, "declared": all[name].view()} {
				if part == "declared" && view.IsZero() {
					continue
				}
				without, failed := countVersions(t, r, view)
				view.Replaced = true
				with, more := countVersions(t, r, view)
				t.Logf("%s: %d checks, %d versions, %d withheld", part, len(r.bodies), without, more-failed)
				if part == "whole" && shellPages[name] {
					continue
				}
				if with != without || more != failed {
					t.Errorf("%s: %d versions and %d failed checks with replaced, %d and %d without", part, with, more, without, failed)
				}
			}
		})
	}
}

// shellPages are the pages of which some recorded versions are shells, as docs/internals/recorded-pages.md says.
var shellPages = map[string]bool{
	"brevo-privacy-policy":                       true, // "Privacy Policy | Brevo"
	"open-terms-archive-privacy-policy":          true, // "You should be redirected quickly, if not click here."
	"open-terms-archive-accessibility-statement": true, // the same
}

// countVersions replays r and returns how many versions and how many failed checks there were.
func countVersions(t *testing.T, r recording, view pipeline.View) (versions, failed int) {
	url, _ := serveRecordings(t, []recording{r})
	var zero time.Duration
	router, err := vokter.New(vokter.Config{
		Sinks: map[string]pipeline.Sink{"none": pipeline.SinkFunc(func(context.Context, pipeline.Notification) error { return nil })},
		Subscriptions: []pipeline.Subscription{{
			URL: url + "/" + r.name, Keywords: []string{"no such word on any page"}, Sinks: []string{"none"}, View: view,
		}},
		Fetch:  vokter.FetchConfig{Concurrency: 8, Rate: 1000, Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}},
		Checks: len(r.bodies), Every: &zero,
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := router.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	s := router.Summary()
	return s.Versions, s.Failed
}
