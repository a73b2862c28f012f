package slack

import (
	"fmt"
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/failure"
	"github.com/vokter/vokter/pipeline/registry"
	"github.com/vokter/vokter/test/slackfake"
)

var loopback = netip.MustParsePrefix("127.0.0.0/8")

// bothKinds are both kinds of sinks for a channel of a fake.
func bothKinds(fake *slackfake.Slack, channel string) map[string]*Slack {
	return map[string]*Slack{
		"bot":     newSlack(Config{Token: registry.NewSecret(slackfake.Token), Channel: channel, APIURL: fake.API(), Connection: localConnection}, nil),
		"webhook": newSlack(Config{WebhookURL: registry.NewSecret(fake.Webhook(channel)), Connection: localConnection}, nil),
	}
}

func sample() pipeline.Notification {
	return pipeline.Notification{
		Status: pipeline.StatusOK, URL: "https://example.com/item?a=b&c=d", ID: "N1", Type: pipeline.NotificationType, Title: "Zeus & Co",
		Time: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), Client: "default",
		Diffs: []pipeline.Diff{{Event: pipeline.Added, Keyword: "stock", Text: "Out", Snippet: "Zeus. Out of stock."}},
	}
}

// testAttempt is an Attempt for tests.
type testAttempt struct {
	document, note string
	degraded       []string
}

func (n *testAttempt) Document() string       { return n.document }
func (n *testAttempt) Note() string           { return n.note }
func (n *testAttempt) SetNote(note string)    { n.note = note }
func (n *testAttempt) Degraded(reason string) { n.degraded = append(n.degraded, reason) }

// TestWords has the fake say each of Slack's words.
func TestWords(t *testing.T) {
	type want struct {
		class     failure.Class
		ambiguous bool
		atOnce    string // what the error begins with, where it is told at once
		requests  int
	}
	for words, want := range map[string]want{
		`account_inactive channel_not_found is_archived team_not_found no_service no_team team_disabled channel_is_archived
			no_active_hooks`: {class: failure.ClassGone, requests: 1},
		`invalid_auth not_authed token_revoked token_expired invalid_token`: {atOnce: "the token is refused: ", requests: 1},
		`missing_scope no_permission access_denied ekm_access_denied not_in_channel restricted_action
			restricted_action_read_only_channel restricted_action_non_threadable_channel action_prohibited
			posting_to_general_channel_denied`: {atOnce: "access is refused: ", requests: 1},
		`no_text msg_too_long msg_blocks_too_long invalid_blocks invalid_blocks_format too_many_attachments
			attachment_payload_limit_exceeded metadata_too_large invalid_metadata_format invalid_metadata_schema invalid_payload`: {
			class: failure.ClassRefused, requests: 2},
		`cannot_reply_to_message restricted_action_thread_locked`:        {requests: 1}, // there was no thread
		`ratelimited rate_limited`:                                       {class: failure.ClassLimited, requests: 1},
		`internal_error fatal_error service_unavailable request_timeout`: {ambiguous: true, requests: 1},
	} {
		for word := range strings.FieldsSeq(words) {
			answers := map[string]slackfake.Answer{
				"bot":     {Status: 200, Body: fmt.Sprintf(`{"ok":false,"error":%q}`, word)},
				"webhook": {Error: word},
			}
			for way, answer := range answers {
				fake := slackfake.Start(t, nil)
				fake.Script("C1", answer, answer)
				err := bothKinds(fake, "C1")[way].Deliver(t.Context(), sample())
				if err == nil {
					t.Errorf("%s, %s: delivered", way, word)
					continue
				}
				class, wait := failure.ClassOf(err)
				atOnce := failure.TellsAtOnce(err)
				if class != want.class || wait != 0 || failure.IsAmbiguous(err) != want.ambiguous || atOnce != (want.atOnce != "") || !strings.HasPrefix(err.Error(), want.atOnce) {
					t.Errorf("%s, %s: class %d, wait %v, ambiguous %v, told at once %v, want %+v: %v", way, word, class, wait, failure.IsAmbiguous(err), atOnce, want, err)
				}
				if got := len(fake.Requests()); got != want.requests {
					t.Errorf("%s, %s: %d requests, want %d", way, word, got, want.requests)
				}
				if !strings.Contains(err.Error(), word) {
					t.Errorf("%s: %q does not say %s", way, err, word)
				}
			}
		}
	}
}

// TestAnswers has the fake answer what Slack would not.
func TestAnswers(t *testing.T) {
	for name, tt := range map[string]struct {
		answer    slackfake.Answer
		class     failure.Class
		ambiguous bool
		wait      time.Duration
		says      string
	}{
		"a new word":              {answer: slackfake.Answer{Status: 200, Body: `{"ok":false,"error":"new_word"}`}, says: "answered new_word"},
		"errors of another shape": {answer: slackfake.Answer{Status: 200, Body: `{"ok":false,"error":"invalid_auth","errors":[{"a":1}]}`}, says: "invalid_auth"},
		"no word":                 {answer: slackfake.Answer{Status: 200, Body: `{"ok":false,"error":"a b"}`}, says: "an error that has no name"},
		"a long word":             {answer: slackfake.Answer{Status: 200, Body: `{"ok":false,"error":"` + strings.Repeat("x", 5000) + `"}`}, says: "an error that has no name"},
		"half an answer":          {answer: slackfake.Answer{Status: 200, Body: `{"ok":true,"ts":"1.`}, ambiguous: true, says: "200 OK"},
		"HTML":                    {answer: slackfake.Answer{Status: 200, Body: `<html>log in</html>`}, ambiguous: true, says: "200 OK"},
		"nothing":                 {answer: slackfake.Answer{Status: 200, Body: `{}`}, ambiguous: true, says: "200 OK"},
		"not ok":                  {answer: slackfake.Answer{Status: 200, Body: `{"ok":false}`}, ambiguous: true, says: "200 OK"},
		"429":                     {answer: slackfake.Answer{Status: 429}, class: failure.ClassLimited, says: "429"},
		"429 with a wait":         {answer: slackfake.RateLimited("3"), class: failure.ClassLimited, wait: 3 * time.Second, says: "429"},
		"429 with a date":         {answer: slackfake.RateLimited("Fri, 02 Jan 2026 03:05:05 GMT"), class: failure.ClassLimited, wait: time.Minute, says: "429"},
		"503 with a wait":         {answer: slackfake.Answer{Status: 503, Header: http.Header{"Retry-After": {"7"}}}, wait: 7 * time.Second, ambiguous: true, says: "503"},
		"201":                     {answer: slackfake.Answer{Status: 201, Body: `{"ok":true,"channel":"C1","ts":"1.1"}`}, says: "201"},
		"lost":                    {answer: slackfake.Answer{Lost: true}, ambiguous: true, says: "no answer"},
	} {
		t.Run(name, func(t *testing.T) {
			fake := slackfake.Start(t, nil)
			fake.Script("C1", tt.answer)
			at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
			s := newSlack(Config{Token: registry.NewSecret(slackfake.Token), Channel: "C1", APIURL: fake.API(), Connection: localConnection}, func() time.Time { return at })
			err := s.Deliver(t.Context(), sample())
			if err == nil {
				t.Fatal("delivered")
			}
			class, wait := failure.ClassOf(err)
			if class != tt.class || wait != tt.wait || failure.IsAmbiguous(err) != tt.ambiguous || !strings.Contains(err.Error(), tt.says) || len(err.Error()) > 200 {
				t.Errorf("class %d, wait %v, ambiguous %v, want %+v: %v", class, wait, failure.IsAmbiguous(err), tt, err)
			}
			// The next attempt arrives.
			if err := s.Deliver(t.Context(), sample()); err != nil || len(fake.Requests()) != 2 {
				t.Errorf("got %v after %d requests", err, len(fake.Requests()))
			}
		})
	}
}

// TestNotOK: without Slack's word nobody knows whether what a webhook got is posted.
func TestNotOK(t *testing.T) {
	for _, body := range []string{"", "o", "OK", "ok, then", "<html>"} {
		fake := slackfake.Start(t, nil)
		fake.Script("C1", slackfake.Answer{Status: 200, Body: body})
		err := bothKinds(fake, "C1")["webhook"].Deliver(t.Context(), sample())
		if !failure.IsAmbiguous(err) {
			t.Errorf("%q: got %v, want an error that says that it may have arrived", body, err)
		}
	}
}

// TestWrongTokenTellsNoSecret: what a wrong token or URL brings says what to do, and not
// what the token is.
func TestWrongTokenTellsNoSecret(t *testing.T) {
	fake := slackfake.Start(t, nil)
	for name, s := range map[string]*Slack{
		"the token is refused: answered invalid_auth":                 newSlack(Config{Token: registry.NewSecret("xoxb-SECRETSECRET"), Channel: "C1", APIURL: fake.API(), Connection: localConnection}, nil),
		"the token is refused: answered 403 Forbidden: invalid_token": newSlack(Config{WebhookURL: registry.NewSecret(fake.URL + "/services/T1/C1/SECRETSECRET"), Connection: localConnection}, nil),
		"channel_not_found: check the channel, and inv":               newSlack(Config{Token: registry.NewSecret(slackfake.Token), Channel: "general", APIURL: fake.API(), Connection: localConnection}, nil),
		"404 Not Found: no_service: make a new webhook":               newSlack(Config{WebhookURL: registry.NewSecret(fake.URL + "/services/SECRETSECRET"), Connection: localConnection}, nil),
		"answered 404 Not Found":                                      newSlack(Config{Token: registry.NewSecret("xoxb-SECRETSECRET"), Channel: "C1", APIURL: fake.URL + "/SECRETSECRET/", Connection: localConnection}, nil),
	} {
		err := s.Deliver(t.Context(), sample())
		if err == nil || !strings.Contains(err.Error(), name) || strings.Contains(err.Error(), "SECRET") {
			t.Errorf("got %v, want %q and no secret", err, name)
		}
	}
}

// TestKnowsItsSecrets: an error that held one of them would not show it.
func TestKnowsItsSecrets(t *testing.T) {
	hook := "https://hooks.slack.com/services/T0/B0/SECRETSECRET"
	for secret, s := range map[string]*Slack{
		"xoxb-123-SECRETSECRET": newSlack(Config{Token: registry.NewSecret("xoxb-123-SECRETSECRET"), Channel: "C1"}, nil),
		hook:                    newSlack(Config{WebhookURL: registry.NewSecret(hook)}, nil),
		"SECRETSECRET":          newSlack(Config{WebhookURL: registry.NewSecret(hook)}, nil),
		"/gate/SECRETSECRET/":   newSlack(Config{Token: registry.NewSecret(slackfake.Token), Channel: "C1", APIURL: "https://example.com/gate/SECRETSECRET/"}, nil),
	} {
		if got := s.sender.Secrets.Clean("at " + secret + " there"); strings.Contains(got, "SECRET") {
			t.Errorf("%q stays in %q", secret, got)
		}
	}
}
