package email

import (
	"slices"
	"strings"
	"testing"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/failure"
	"github.com/vokter/vokter/pipeline/registry"
)

var threeRecipients = registry.Texts{"ann@r.example", "Bob <bob@r.example>", "cyd@r.example"}

// TestRecipients delivers to a server that refuses some of the recipients.
func TestRecipients(t *testing.T) {
	const bob, cyd = "RCPT TO:<bob@r.example>", "RCPT TO:<cyd@r.example>"
	for _, tt := range []struct {
		name     string
		answers  map[string]string
		class    failure.Class
		says     string // the error; empty: delivered
		degraded string
		sent     bool
		again    []string // to whom the next attempt sends
	}{
		{"all are taken", nil, 0, "", "", true, nil},
		{"one is to be tried later", map[string]string{bob: "450 4.2.0 greylisted"}, failure.ClassRetry,
			"the server answered 450 4.2.0 greylisted to the recipient bob@r.example", "", true, []string{"bob"}},
		{"one has no such address", map[string]string{cyd: "550 5.1.1 no such user"}, 0, "",
			"the server answered 550 5.1.1 no such user to the recipient cyd@r.example; remove this", true, nil},
		{"one is denied, one is unknown", map[string]string{bob: "550 5.7.1 denied", cyd: "550 5.1.1 no such user"}, failure.ClassRetry,
			"550 5.7.1 denied to the recipient bob@r.example", "", true, []string{"bob"}},
		{"nobody is taken", map[string]string{"RCPT": "450 4.2.0 greylisted"}, failure.ClassRetry,
			"to the recipient ann@r.example, the server answered 450 4.2.0 greylisted to the recipient bob", "", false, []string{"ann", "bob", "cyd"}},
		{"nobody exists", map[string]string{"RCPT": "550 5.1.1 no such user"}, failure.ClassGone, "no such user to the recipient cyd@r.example", "", false, nil},
		{"the message is refused, one is unknown", map[string]string{".": "550 5.1.1 no such user"}, failure.ClassRefused, "no such user", "", true, []string{"ann", "bob", "cyd"}},
		{"the server hangs up", map[string]string{bob: "421 4.3.2 closing"}, failure.ClassRetry, "421 4.3.2 closing", "", false, []string{"ann", "bob", "cyd"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := (&scriptedServer{answers: tt.answers}).start(t)
			c := unencryptedConfig(s.host, s.port)
			c.To = threeRecipients
			a := &attempt{}
			err := newEmail(t, c).Deliver(pipeline.WithAttempt(t.Context(), a), sample())
			if (err == nil) != (tt.says == "") || err != nil && !strings.Contains(err.Error(), tt.says) {
				t.Errorf("got %v, want %q", err, tt.says)
			}
			if class, _ := failure.ClassOf(err); class != tt.class {
				t.Errorf("class %d of %v, want %d", class, err, tt.class)
			}
			if got := strings.Join(a.degraded, ""); (got == "") != (tt.degraded == "") || !strings.HasPrefix(got, tt.degraded) {
				t.Errorf("degraded for %q, want %q", got, tt.degraded)
			}
			if s.hasCommand("DATA") != tt.sent {
				t.Errorf("said %q; the message was sent: %v, want %v", s.commandLines(), !tt.sent, tt.sent)
			}
			if tt.again == nil {
				return
			}
			good := (&scriptedServer{}).start(t)
			c.Host, c.Port = good.host, good.port
			if err := newEmail(t, c).Deliver(pipeline.WithAttempt(t.Context(), a), sample()); err != nil {
				t.Fatal(err)
			}
			if got := rcptAddresses(good); !slices.Equal(got, tt.again) {
				t.Errorf("the next attempt sent to %q, want %q", got, tt.again)
			}
			// Another notification of the document goes to all.
			other := sample()
			other.ID = "OTHER"
			if err := newEmail(t, c).Deliver(pipeline.WithAttempt(t.Context(), a), other); err != nil {
				t.Fatal(err)
			}
			if got := rcptAddresses(good)[len(tt.again):]; len(got) != 3 {
				t.Errorf("the next notification went to %q, want all", got)
			}
		})
	}
}

// rcptAddresses are the recipients that were named to s.
func rcptAddresses(s *scriptedServer) []string {
	var all []string
	for _, l := range s.commandLines() {
		if r, ok := strings.CutPrefix(l, "RCPT TO:<"); ok {
			name, _, _ := strings.Cut(r, "@")
			all = append(all, name)
		}
	}
	return all
}

// TestNoteHolds: what is noted of as many recipients as there can be is short enough to be kept.
func TestNoteHolds(t *testing.T) {
	c := unencryptedConfig("127.0.0.1", 1)
	c.To = nil
	for i := range maxRecipients {
		c.To = append(c.To, strings.Repeat("a", i+1)+"@r.example")
	}
	a, id := &attempt{}, strings.Repeat("x", 200)
	e := newEmail(t, c)
	e.noteRecipients(a, id, []refusedRecipient{{recipient: e.recipients[99]}})
	if len(a.note) > pipeline.MaxNote {
		t.Errorf("the note has %d bytes, want at most %d", len(a.note), pipeline.MaxNote)
	}
	if left := e.missingRecipients(a, id); len(left) != 1 || left[0] != e.recipients[99] {
		t.Errorf("%v remain, want the last one", left)
	}
}
