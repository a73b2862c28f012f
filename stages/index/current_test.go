package index

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/flow"
)

// published returns the versions of the whole page that the last event published, and how often it said that the
// document ended.
func (b *bench) published() (versions []uint64, gone int) {
	for _, o := range all[publishCurrent](b.out) {
		if o.Document == whole && o.Incarnation == b.p.Incarnation {
			versions = append(versions, o.N)
		}
	}
	return versions, len(all[publishGone](b.out))
}

func (b *bench) wantPublished(what string, version uint64, gone int) {
	b.Helper()
	got, ended := b.published()
	if version == 0 && len(got) != 0 || version != 0 && (len(got) != 1 || got[0] != version) || ended != gone {
		b.Errorf("%s: published %v and %d ends, want %d and %d", what, got, ended, version, gone)
	}
}

func TestCurrentTextsArePublished(t *testing.T) {
	b := newBench(t)
	b.rules.Current = true
	b.subscribe("c", pipeline.View{})
	b.wantPublished("before the first text", 0, 0)
	b.read("one")
	b.wantPublished("the first text", 1, 0)
	b.due()
	b.unchanged()
	b.wantPublished("the same text", 0, 0)
	b.due()
	b.read("two")
	b.wantPublished("another text", 2, 0)
	b.pause("c")
	b.wantPublished("a pause", 0, 0)
	b.cancel("c")
	b.wantPublished("the end", 0, 1)
	b.subscribe("c", pipeline.View{})
	b.cancel("c")
	b.wantPublished("the end of a document without a text", 0, 0)
}

// TestCurrentTextsAreCaughtUp switches the topic off and on: what was published before does not count.
func TestCurrentTextsAreCaughtUp(t *testing.T) {
	b := newBench(t)
	b.subscribe("c", pipeline.View{})
	b.read("one")
	b.wantPublished("while it is off", 0, 0)
	b.rules.Current = true
	b.due()
	b.wantPublished("at a wake after it was switched on", 1, 0)
	b.unchanged()
	b.wantPublished("after that", 0, 0)
	b.rules.Current = false
	b.due()
	b.unchanged()
	b.rules.Current = true
	b.due()
	b.wantPublished("when it is on again", 1, 0)
}

// TestARebasedTextIsPublished: new rules of extraction alter the current text without a version.
func TestARebasedTextIsPublished(t *testing.T) {
	b := newBench(t)
	b.rules.Current = true
	b.subscribe("c", pipeline.View{})
	b.read("one")
	b.p.Document(whole).Extractor, b.p.Document(whole).Body, b.p.Body = "html/1", 1, 1
	b.due()
	b.p.Open.Rebase = true
	o := b.outcome(flow.OutcomeRead)
	o.Document, o.Parts, o.TextHash, o.Extractor = whole, 1, "text:ONE", "html/2"
	o.Rebased = &flow.Rebased{TextHash: "text:ONE", Extractor: "html/2"}
	b.found(o)
	one[rebase](b)
	b.wantPublished("the text by the new rules", 1, 0)
}

func TestCurrentRecord(t *testing.T) {
	link := func(page, document string, version uint64) string { return "https://vokter.example.com/diff" }
	d := newDesk(t, Config{Current: true, Link: link})
	var got []flow.Current
	note := func() {
		t.Helper()
		for _, m := range d.out {
			if m.Topic != flow.TopicCurrent {
				continue
			}
			if m.Key != whole || m.Type != flow.TypeCurrent || m.Subject != page {
				t.Errorf("got %+v", m)
			}
			got = append(got, body[flow.Current](d, m))
		}
	}
	d.subscribe("c")
	d.answer("Zeus")
	note()
	d.wake()
	d.answer("\u0002Hera\u0003Argus\n")
	note()
	if len(got) != 2 || got[0].Version != 1 || got[0].Text != "Zeus" || got[0].Link != "" || got[0].Previous != 0 {
		t.Fatalf("got %+v", got)
	}
	if c := got[1]; c.Version != 2 || c.Previous != 1 || c.Text != "\nHera\nArgus\n" || c.Link == "" || c.Document != whole || c.Page != page || c.Hash == "" {
		t.Errorf("got %+v", c)
	}
}

// TestALargeTextIsCut: a record has at most 4 MiB, whatever JSON makes of the text.
func TestALargeTextIsCut(t *testing.T) {
	m, err := flow.Current{Document: "d", Version: 1, Text: strings.Repeat("é<", 2<<20)}.Message()
	if err != nil || len(m.Body) > 4<<20 {
		t.Fatalf("%d bytes, %v", len(m.Body), err)
	}
	var c flow.Current
	if err := json.Unmarshal(m.Body, &c); err != nil || !c.Truncated || !strings.HasPrefix(c.Text, "é<é<") || strings.ContainsRune(c.Text, '�') {
		t.Errorf("%v, truncated %v", err, c.Truncated)
	}
}
