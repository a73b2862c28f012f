package slackfake

import (
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strings"
)

// maxBody bounds a request, in bytes.
const maxBody = 1 << 20

var idForm = regexp.MustCompile(`^[CDG][A-Z0-9]*$`)

// channelID is the ID of a channel, empty if it is not named as one.
func channelID(name string) string {
	if n, ok := strings.CutPrefix(name, "#"); ok && n != "" {
		return "C" + strings.Map(func(r rune) rune {
			if r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' {
				return r
			}
			return -1
		}, strings.ToUpper(n))
	}
	if idForm.MatchString(name) {
		return name
	}
	return ""
}

// postMessage is the method chat.postMessage, with a form as its body.
func (s *Slack) postMessage(w http.ResponseWriter, r *http.Request) {
	fail := func(word string) {
		if word == "ratelimited" {
			w.Header().Set("Retry-After", "1")
			answer(w, http.StatusTooManyRequests, map[string]any{"ok": false, "error": word})
			return
		}
		answer(w, http.StatusOK, map[string]any{"ok": false, "error": word})
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err != nil {
		return
	}
	form, err := url.ParseQuery(string(body))
	if err != nil || r.Header.Get("Content-Type") != "application/x-www-form-urlencoded" {
		fail("invalid_form_data")
		return
	}
	m := Message{
		Channel: channelID(form.Get("channel")), Asked: form.Get("channel"), Thread: form.Get("thread_ts"),
		Broadcast: form.Get("reply_broadcast") == "true",
		Text:      form.Get("text"), Markup: form.Get("mrkdwn") != "false",
		Unfurls: form.Get("unfurl_links") != "false" || form.Get("unfurl_media") != "false",
		Blocks:  raw(form, "blocks"), Metadata: raw(form, "metadata"),
	}
	switch token := form.Get("token"); {
	case token == "":
		fail("not_authed")
	case token != Token:
		fail("invalid_auth")
	case m.Channel == "":
		fail("channel_not_found")
	case s.scripted(w, &m, fail):
	default:
		if word := s.post(&m); word != "" {
			fail(word)
			return
		}
		said := map[string]any{"type": "message", "ts": m.TS, "text": m.Text, "bot_id": "B1"}
		if m.Thread != "" {
			said["thread_ts"] = m.Thread
		}
		answer(w, http.StatusOK, map[string]any{"ok": true, "channel": m.Channel, "ts": m.TS, "message": said})
	}
}

// raw is a field of a form as JSON.
func raw(form url.Values, name string) json.RawMessage {
	if !form.Has(name) {
		return nil
	}
	return json.RawMessage(form.Get(name))
}

func answer(w http.ResponseWriter, status int, body map[string]any) {
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body)
}
