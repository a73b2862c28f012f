package matrix_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/vokter/vokter/internal/outbound"
	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/registry"
	"github.com/vokter/vokter/sinks/matrix"
	"github.com/vokter/vokter/test/chattest"
)

// TestCheck asks homeservers whether the room is encrypted.
func TestCheck(t *testing.T) {
	const encrypted = `{"algorithm":"m.megolm.v1.aes-sha2"}`
	for _, tt := range []struct {
		name         string
		status       int
		body         string
		allow        bool
		says, advice string // of the error; empty: there is none
	}{
		{"not encrypted", 404, `{"errcode":"M_NOT_FOUND","error":"Event not found."}`, false, "", ""},
		{"encrypted", 200, encrypted, false, "the room is encrypted", "allow_unencrypted: true"},
		{"encrypted, allowed", 200, encrypted, true, "", ""},
		{"not in the room", 403, `{"errcode":"M_FORBIDDEN","error":"User @v:matrix.org not in room !x"}`, true, "the account is not in the room: answered 403 Forbidden: M_FORBIDDEN: User @v:matrix.org not in room", "invite the account to " + room},
		{"wrong token", 401, `{"errcode":"M_UNKNOWN_TOKEN","error":"Invalid access token passed."}`, false, "the token is refused", ""},
		{"no homeserver", 404, `<html>not here</html>`, false, "answered 404 Not Found", ""},
		{"another API", 404, `{"errcode":"M_UNRECOGNIZED","error":"Unrecognized request"}`, false, "M_UNRECOGNIZED", ""},
		{"broken", 502, `no`, true, "answered 502 Bad Gateway", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := chattest.NewReceiver(t, chattest.Answer(tt.status, tt.body))
			s := chattest.Build(t, matrix.New, matrix.Config{
				Homeserver: registry.NewSecret(r.URL), Room: room, Token: registry.NewSecret("syt_secret"), AllowUnencrypted: tt.allow,
			})
			c, ok := pipeline.CheckerOf(pipeline.LimitRate(s, 1, 1)) // as with a rate in the configuration
			if !ok {
				t.Fatal("it cannot be asked")
			}
			err := c.Check(t.Context())
			if (err == nil) != (tt.says == "") || err != nil && !strings.Contains(err.Error(), tt.says) {
				t.Errorf("got %v, want %q", err, tt.says)
			}
			advised, ok := errors.AsType[*outbound.Advised](err)
			if ok != (tt.advice != "") || ok && !strings.Contains(advised.Advice, tt.advice) {
				t.Errorf("got the advice of %v, want %q", err, tt.advice)
			}
			want := chattest.Caught{Method: http.MethodGet, URI: "/_matrix/client/v3/rooms/%21QtykxKocfZaZOUrTwp:matrix.org/state/m.room.encryption"}
			if got := r.Got; len(got) != 1 || got[0].Method != want.Method || got[0].URI != want.URI || len(got[0].Body) != 0 {
				t.Errorf("got %+v, want %+v", got, want)
			}
		})
	}
}
