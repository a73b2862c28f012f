package index

import (
	"fmt"
	"strings"
	"testing"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/flow"
)

// numbered returns n different words.
func numbered(word string, n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "%s%d ", word, i)
	}
	return b.String()
}

func TestReplacement(t *testing.T) {
	long := numbered("word", 400)
	menu := numbered("menu", 40)
	for name, c := range map[string]struct {
		old, new, want string
	}{
		"a shell of a few words":           {long, "Shop\n", "its text shrank from 400 tokens to 1"},
		"a twentieth is left":              {long, numbered("word", 20), "its text shrank from 400 tokens to 20"},
		"more than a twentieth is left":    {long, numbered("word", 21), ""},
		"a short text that shrinks":        {numbered("word", 99), "sold out\n", ""},
		"an application without a browser": {"Zeus is in stock\n", "You need to enable JavaScript to run this app.\n", `its text of 9 tokens says "javascript", and only 0 of the 4 tokens of the last version are in it`},
		"a challenge":                      {numbered("word", 50), "Just a moment...\nVerify you are human by completing the action below.\n", "says \"you are human\""},
		"a login wall in the same layout":  {menu + long, menu + "Log in\nUser name\nPassword\nForgot your password?\n", `says "password", and only 40 of the 440`},
		"a login wall in Japanese":         {long, menu + "ユーザー名 パスワード\n", "says \"パスワード\""},
		"an error page":                    {long, menu + "404\nPage not found\n", "says \"not found\""},
		"the page, now with a login":       {menu + long, menu + long + "Log in with your password\n", ""},
		"half of the page, with a login":   {long, numbered("word", 201) + "password\n", ""},
		"a page that spoke of it before":   {long + "password\n", menu + "password\n", ""},
		"a rewritten page":                 {long, numbered("other", 100), ""},
		"a long text that speaks of it":    {long, numbered("other", 301) + " password\n", ""},
		"another language":                 {"Welcome to our little shop. All prices include taxes.\n", "Willkommen in unserem kleinen Laden. Alle Preise enthalten Steuern.\n", ""},
		"equal texts":                      {long, long, ""},
	} {
		got := replacementReason(c.old, c.new)
		if c.want == "" && got != "" || !strings.Contains(got, c.want) {
			t.Errorf("%s: got %q, want %q", name, got, c.want)
		}
	}
}

// look gives the document id of b the text, in a check that finds it replaced if why is not empty.
func (b *bench) look(id, text, why string) {
	b.Helper()
	if b.p.Open == nil {
		b.due()
	}
	b.replacements = nil
	if why != "" {
		b.replacements = map[string]string{id: why}
	}
	b.text(id, text, 0, 1)
}

func TestReplacedPage(t *testing.T) {
	view := pipeline.View{Replaced: true}
	id := flow.DocumentID(page, view)
	b := newBench(t)
	b.rules.Expire.After = 3 // such checks do not count
	b.subscribe("c", view)
	b.look(id, "A", "")
	for i := range replacedAfter - 1 {
		b.look(id, fmt.Sprint("wall ", i), "why") // whatever it says
		none[newVersion](b)
		if hs := all[healthEvent](b.out); i == 0 {
			if h := one[healthEvent](b); h.Event != pipeline.HealthPageReplaced || h.Document != id || h.Class != pipeline.FailReplaced {
				t.Errorf("got %+v", h)
			}
		} else if len(hs) > 0 {
			t.Errorf("check %d: %+v", i, hs)
		}
		r := one[record](b)
		if r.Result != flow.OutcomeFailed || r.Class != pipeline.FailReplaced || !strings.Contains(r.Reason, fmt.Sprintf("(check %d in a row of 20, ", i+1)) {
			t.Errorf("check %d: %+v", i, r)
		}
		if r := b.due(); r.BodyHash != "" || r.ETag != "" {
			t.Errorf("the next request carries %+v, so an equal page would not be looked at", r)
		}
	}
	b.look(id, "A", "") // the page returns in time
	none[newVersion](b)
	if h := one[healthEvent](b); h.Event != pipeline.HealthRecovered {
		t.Errorf("got %+v", h)
	}
	for range replacedAfter - 1 {
		b.look(id, "wall", "why")
		none[newVersion](b)
	}
	b.look(id, "wall", "why") // it was rewritten
	if v := one[newVersion](b); v.Snapshot.Previous != 1 {
		t.Errorf("got %+v", v)
	}
	if h := one[healthEvent](b); h.Event != pipeline.HealthRecovered {
		t.Errorf("got %+v", h)
	}
}

// TestReplacedAndConfirm: a page that counts as rewritten must still be confirmed.
func TestReplacedAndConfirm(t *testing.T) {
	view := pipeline.View{Replaced: true, Confirm: 3}
	id := flow.DocumentID(page, view)
	b := newBench(t)
	b.subscribe("c", view)
	b.look(id, "A", "")
	for range replacedAfter + 1 {
		b.look(id, "wall", "why")
		none[newVersion](b)
	}
	b.look(id, "wall", "why")
	one[newVersion](b)
}

// TestReplacedByAKnownText: with flip_flop, a text that was reported is not a replacement.
func TestReplacedByAKnownText(t *testing.T) {
	view := pipeline.View{Replaced: true, FlipFlop: 2}
	id := flow.DocumentID(page, view)
	b := newBench(t)
	b.subscribe("c", view)
	b.look(id, "long", "")
	for range replacedAfter {
		b.look(id, "short", "why")
	}
	one[newVersion](b)
	b.look(id, "long", "")
	one[newVersion](b)
	for _, text := range []string{"short", "long", "short", "long"} {
		b.look(id, text, map[string]string{"short": "why"}[text])
		none[newVersion](b)
		none[healthEvent](b)
	}
}

// TestAPushedPageIsReplaced: a pushed page is looked at as a fetched one is.
func TestAPushedPageIsReplaced(t *testing.T) {
	d := newDesk(t, Config{Read: reader("lines/1")})
	s := sub("c", pipeline.View{Replaced: true})
	s.Interval = pipeline.Never
	d.command(flow.TypeSubscribe, flow.SubscribeCommand{Subscription: s, Origin: "api"})
	types := func(body string) []string {
		t.Helper()
		if err := d.hand(body, body); err != nil {
			t.Fatal(err)
		}
		return d.types()
	}
	full := numbered("word", 100)
	for _, step := range []struct{ body, want string }{
		{full, flow.TypeSnapshot}, {"Loading...", flow.TypeHealth}, {full + "more", flow.TypeHealth + " " + flow.TypeSnapshot},
	} {
		if got := strings.Join(types(step.body), " "); got != step.want {
			t.Errorf("%.20q: got %q, want %q", step.body, got, step.want)
		}
	}
}

// watchTexts gives a document with view the texts in turn, one check each, and returns the
// version that each check made as "text(previous)", or "-" for none.
func watchTexts(t *testing.T, view pipeline.View, texts string) (b *bench, got string) {
	t.Helper()
	id := flow.DocumentID(page, view)
	b = newBench(t)
	b.subscribe("c", view)
	var made []string
	for i, s := range strings.Fields(texts) {
		if i > 0 {
			b.due()
		}
		b.text(id, s, 0, 1)
		vs := all[newVersion](b.out)
		if len(vs) == 0 {
			made = append(made, "-")
			continue
		}
		made = append(made, fmt.Sprintf("%s(%d)", s, vs[0].Snapshot.Previous))
	}
	return b, strings.Join(made, " ")
}

func TestFlipFlop(t *testing.T) {
	for _, c := range []struct {
		k, confirm  int
		texts, want string
	}{
		// Both directions are told once. C is compared with the text that was told last.
		{2, 0, "A B A B A B C", "A(0) B(1) A(2) - - - C(3)"},
		{2, 0, "A B A B B B C", "A(0) B(1) A(2) - - - C(3)"},
		{0, 0, "A B A B", "A(0) B(1) A(2) B(3)"},
		// Two remembered texts are not enough for three.
		{2, 0, "A B C A B C", "A(0) B(1) C(2) A(3) B(4) C(5)"},
		{3, 0, "A B C A B C A D", "A(0) B(1) C(2) A(3) - - - D(4)"},
		// A text is news again after k other changes.
		{2, 0, "A B C D B", "A(0) B(1) C(2) D(3) B(4)"},
		{3, 0, "A B C D B", "A(0) B(1) C(2) D(3) -"},
		// The checks that confirm a text must follow each other.
		{2, 2, "A B B A A B B C C", "A(0) - B(1) - A(2) - - - C(3)"},
		{2, 2, "A B B A A C B C C", "A(0) - B(1) - A(2) - - - C(3)"},
	} {
		b, got := watchTexts(t, pipeline.View{FlipFlop: c.k, Confirm: c.confirm}, c.texts)
		if got != c.want {
			t.Errorf("flip_flop %d, confirm %d: %s made %s, want %s", c.k, c.confirm, c.texts, got, c.want)
		}
		if n := len(b.p.Documents[0].Changes); n > c.k {
			t.Errorf("flip_flop %d: %d texts are remembered", c.k, n)
		}
	}
}

func TestFlipFlopSaysWhy(t *testing.T) {
	b, _ := watchTexts(t, pipeline.View{FlipFlop: 2}, "A B A B")
	want := "the page has the text of version 2 again, which is not reported because of flip_flop: 2; version 3 stays current"
	if r := one[record](b); r.Result != flow.OutcomeRead || r.Reason != want || r.Class != "" {
		t.Errorf("got %+v", r)
	}
}

// TestFlipFlopAfterAnUpgrade: the current text keeps its place among the changes when new rules
// extract it; the others have hashes that no text gets any more.
func TestFlipFlopAfterAnUpgrade(t *testing.T) {
	d := Document{View: pipeline.View{FlipFlop: 3}, N: 3, Changes: []madeVersion{{2, "old B"}, {3, "old A"}}}
	d.rehashChanges("new A")
	if len(d.Changes) != 1 || d.Changes[0] != (madeVersion{3, "new A"}) {
		t.Errorf("got %+v", d.Changes)
	}
	d.N, d.TextHash = 4, "new C"
	if d.noteChange(0, "new C"); d.Changes != nil { // a new baseline
		t.Errorf("a baseline leaves %+v", d.Changes)
	}
}
