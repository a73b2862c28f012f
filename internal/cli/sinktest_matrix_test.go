package cli

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// TestMatrixRoom tests sinks for rooms that are encrypted, or that the account is not in.
func TestMatrixRoom(t *testing.T) {
	const (
		encrypted = "sink team: the room is encrypted, and notifications would be sent to it without encryption; " +
			"write the ID of a room that is not encrypted, or permit this with allow_unencrypted: true"
		outside = "sink team: the account is not in the room: answered 403 Forbidden: M_FORBIDDEN: User @v:example.org not in room; " +
			"invite the account to !r:example.org and let it join there"
	)
	for name, tt := range map[string]struct {
		state     http.HandlerFunc // of the room: m.room.encryption
		option    string
		code      int
		sent      string // by sink test
		connected string // by lint --connect
	}{
		"not encrypted":      {text(404, `{"errcode":"M_NOT_FOUND","error":"Event not found."}`), "", 0, "team: delivered, answered 200 OK", "sink team: ok\n"},
		"encrypted":          {text(200, `{"algorithm":"m.megolm.v1.aes-sha2"}`), "", 1, encrypted, encrypted},
		"encrypted, allowed": {text(200, `{"algorithm":"m.megolm.v1.aes-sha2"}`), ", allow_unencrypted: true", 0, "team: delivered, answered 200 OK", "sink team: ok\n"},
		"outside":            {text(403, `{"errcode":"M_FORBIDDEN","error":"User @v:example.org not in room"}`), "", 1, outside, outside},
		"wrong token":        {text(401, `{"errcode":"M_UNKNOWN_TOKEN","error":"x"}`), "", 1, "check its token, secret or password", "check its token, secret or password"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newTested(t, func(w http.ResponseWriter, r *http.Request) {
				if strings.HasSuffix(r.URL.Path, "/state/m.room.encryption") {
					tt.state(w, r)
					return
				}
				text(200, `{"event_id":"$1"}`)(w, r)
			})
			path := sinkFile(t, r, fmt.Sprintf(`{matrix: {homeserver: "URL", room: "!r:example.org", token: %s%s}}`, testSecret, tt.option))
			got := vs(t, "lint", "--connect", "-c", path)
			if got.code != tt.code || !strings.Contains(got.stdout+got.stderr, tt.connected) {
				t.Errorf("lint: got %+v, want %d and %s", got, tt.code, tt.connected)
			}
			if bodies := strings.Join(r.got(), ""); bodies != "" {
				t.Errorf("lint sent %s", bodies)
			}
			got = vs(t, "sink", "test", "team", "-c", path)
			if got.code != tt.code || !strings.Contains(got.stdout+got.stderr, tt.sent) {
				t.Errorf("sink test: got %+v, want %d and %s", got, tt.code, tt.sent)
			}
			if bodies := strings.Join(r.got(), ""); (bodies == "") != (tt.code != 0) {
				t.Errorf("sink test sent %q", bodies)
			}
			got = vs(t, "lint", "--connect", "-c", path, "--format", "json")
			if want := fmt.Sprintf(`{"kind":"sink_check","sink":"team","ok":%v`, tt.code == 0); got.code != tt.code || !strings.Contains(got.stdout, want) {
				t.Errorf("lint: got %+v, want %d and %s", got, tt.code, want)
			}
		})
	}
}
