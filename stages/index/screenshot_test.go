package index

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/vokter/vokter/pipeline/flow"
)

// TestScreenshots stores the picture of a page with the version that it came with, as long as the
// version is stored.
func TestScreenshots(t *testing.T) {
	d := newDesk(t, Config{Keep: 2})
	d.subscribe("c")
	for i := range 4 {
		if i > 0 {
			d.wake()
		}
		o := fetched(d.request, 0, fmt.Sprintf("%sNumber %s.\n", english, strings.Repeat("x", i+1)))
		o.Time = d.now
		if i != 2 { // no picture could be taken
			o.Screenshot = []byte{'p', byte(i)}
		}
		d.handle(o.Message())
		v, ok, err := LoadVersion(d.state(), whole, uint64(i+1))
		if err != nil || !ok || v.Screenshot != (i != 2) {
			t.Fatalf("version %d: %+v, %v, %v", i+1, v, ok, err)
		}
	}
	for n, want := range map[uint64][]byte{1: nil, 2: nil, 3: nil, 4: {'p', 3}} {
		got, ok, err := LoadScreenshot(d.state(), whole, n)
		if err != nil || ok != (want != nil) || !bytes.Equal(got, want) {
			t.Errorf("version %d: got %v, %v, %v, want %v", n, got, ok, err, want)
		}
	}
	if o, err := flow.OutcomeFrom(fetched(d.request, 0, english).Message()); err != nil || o.Screenshot != nil {
		t.Errorf("an outcome without: %v, %v", o.Screenshot, err)
	}
	d.cancel("c")
	for _, name := range d.store.Names(page) {
		if strings.HasPrefix(name, screenshotsName) {
			t.Errorf("%s stays when the document ends", name)
		}
	}
}
