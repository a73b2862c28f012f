package slackfake

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
)

// statuses go with the words of incoming webhooks; all others are 400.
var statuses = map[string]int{
	"invalid_token": http.StatusForbidden, "action_prohibited": http.StatusForbidden,
	"no_service": http.StatusNotFound, "no_team": http.StatusNotFound, "team_disabled": http.StatusNotFound,
	"channel_not_found": http.StatusNotFound, "channel_is_archived": http.StatusGone,
	"rate_limited": http.StatusTooManyRequests, "rollup_error": http.StatusInternalServerError,
}

// webhook is an incoming webhook, with JSON as its body.
func (s *Slack) webhook(w http.ResponseWriter, r *http.Request) {
	fail := func(word string) {
		status := http.StatusBadRequest
		if known, ok := statuses[word]; ok {
			status = known
		}
		w.WriteHeader(status)
		_, _ = io.WriteString(w, word)
	}
	parts := strings.Split(r.URL.Path, "/") // "", services, team, channel, secret
	if len(parts) != 5 || channelID(parts[3]) == "" {
		fail("no_service")
		return
	}
	if parts[4] != secret {
		fail("invalid_token")
		return
	}
	var payload struct {
		Text        string          `json:"text"`
		Blocks      json.RawMessage `json:"blocks"`
		Markup      *bool           `json:"mrkdwn"`
		UnfurlLinks *bool           `json:"unfurl_links"`
		UnfurlMedia *bool           `json:"unfurl_media"`
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err != nil || json.Unmarshal(body, &payload) != nil {
		fail("invalid_payload")
		return
	}
	off := func(b *bool) bool { return b != nil && !*b }
	m := Message{
		Channel: parts[3], Asked: parts[3], Text: payload.Text, Blocks: payload.Blocks, Webhook: true, Markup: !off(payload.Markup),
		Unfurls: !off(payload.UnfurlLinks) || !off(payload.UnfurlMedia),
	}
	if s.scripted(w, &m, fail) {
		return
	}
	switch word := s.post(&m); word {
	case "":
		_, _ = io.WriteString(w, "ok")
	case "ratelimited":
		w.Header().Set("Retry-After", "1")
		fail("rate_limited")
	case "no_text":
		fail(word)
	default:
		fail("invalid_payload")
	}
}
