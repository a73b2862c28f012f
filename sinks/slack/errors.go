package slack

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strings"

	"github.com/vokter/vokter/internal/outbound"
	"github.com/vokter/vokter/pipeline/failure"
)

// errorKind is the meaning of an error code of Slack.
type errorKind int

const (
	kindUnknown     errorKind = iota // Slack adds codes without notice: retried
	kindGone                         // the channel, or the account, does not exist any more
	kindToken                        // the token, or the webhook, is not taken
	kindPermission                   // it has no right to post to the channel
	kindMessage                      // this message cannot be posted as it is
	kindThread                       // the thread takes no answers
	kindRateLimit                    // too many messages
	kindServerError                  // Slack has trouble, and may have posted the message all the same
)

func kindOf(word string) errorKind {
	switch word {
	case "account_inactive", "channel_not_found", "is_archived", "channel_is_archived", "team_not_found", "no_team", "team_disabled",
		"no_service", "no_active_hooks":
		return kindGone
	case "invalid_auth", "not_authed", "token_revoked", "token_expired", "invalid_token":
		return kindToken
	case "missing_scope", "no_permission", "access_denied", "ekm_access_denied", "not_in_channel", "action_prohibited",
		"posting_to_general_channel_denied":
		return kindPermission
	case "no_text", "msg_too_long", "msg_blocks_too_long", "invalid_blocks", "invalid_blocks_format", "too_many_attachments",
		"attachment_payload_limit_exceeded", "metadata_too_large", "invalid_payload":
		return kindMessage
	case "cannot_reply_to_message", "restricted_action_thread_locked", "thread_not_found":
		return kindThread
	case "ratelimited", "rate_limited":
		return kindRateLimit
	case "internal_error", "fatal_error", "service_unavailable", "request_timeout":
		return kindServerError
	}
	switch {
	case strings.HasPrefix(word, "restricted_action"):
		return kindPermission
	case strings.HasPrefix(word, "invalid_metadata_"):
		return kindMessage
	}
	return kindUnknown
}

// errorHints say what to do about some error codes.
var errorHints = map[string]string{
	"channel_not_found": "check the channel, and invite the bot if it is a private one",
	"not_in_channel":    "invite the bot to the channel",
	"missing_scope":     "give the app the scope chat:write",
	"no_service":        "make a new webhook",
}

// channelErrors are the error codes that are about one channel of the workspace.
var channelErrors = map[string]bool{
	"channel_not_found": true, "is_archived": true, "channel_is_archived": true, "not_in_channel": true, "restricted_action": true,
	"restricted_action_read_only_channel": true, "restricted_action_non_threadable_channel": true, "posting_to_general_channel_denied": true,
}

// channelError says that the bot cannot post to one channel.
type channelError struct{ error }

// Unwrap returns the error itself.
func (e *channelError) Unwrap() error { return e.error }

// isChannelError reports whether err is about one channel and not about the sink.
func isChannelError(err error) bool {
	_, ok := errors.AsType[*channelError](err)
	return ok
}

// codeError classifies err by word, the error code in a.
func codeError(a *outbound.Answer, err error, word string) error {
	if hint := errorHints[word]; hint != "" {
		err = fmt.Errorf("%w: %s", err, hint)
	}
	if channelErrors[word] {
		err = &channelError{err}
	}
	switch kindOf(word) {
	case kindGone:
		return failure.Gone(err)
	case kindToken:
		return failure.TellAtOnce(fmt.Errorf("%s: %w", outbound.TokenRefused, err))
	case kindPermission:
		return failure.TellAtOnce(fmt.Errorf("%s: %w", outbound.AccessRefused, err))
	case kindMessage:
		return failure.Refused(err)
	case kindThread:
		return &threadError{err}
	case kindRateLimit:
		return a.Limit(err, 0)
	case kindServerError:
		return failure.Ambiguous(err)
	}
	return err
}

// statusError is the error for an answer whose status is not 200; word is the error code in its
// body, if there is one.
func statusError(a *outbound.Answer, word string) error {
	err := a.Err()
	if err == nil { // another 2xx
		return fmt.Errorf("answered %d %s, which Slack does not", a.Status, http.StatusText(a.Status))
	}
	if safeCodePattern.MatchString(word) {
		err = fmt.Errorf("%w: %s", err, word)
	}
	switch {
	case a.Status == http.StatusTooManyRequests:
		return err
	case a.Status >= http.StatusInternalServerError:
		return failure.Ambiguous(err)
	case kindOf(word) != kindUnknown: // the word says more than the status
		return codeError(a, fmt.Errorf("answered %d %s: %s", a.Status, http.StatusText(a.Status), word), word)
	}
	return err
}

// threadError says that a thread accepts no replies. Outside of a thread it is an error to be
// retried.
type threadError struct{ error }

// Unwrap returns the error itself.
func (e *threadError) Unwrap() error { return e.error }

// errorCodeOf returns the error code in an answer of the API, or "".
func errorCodeOf(body []byte) string {
	var said struct {
		OK    bool   `json:"ok"`
		Error string `json:"error"`
	}
	if json.NewDecoder(bytes.NewReader(body)).Decode(&said) != nil || said.OK {
		return ""
	}
	return said.Error
}

// safeCodePattern matches error codes that can be shown.
var safeCodePattern = regexp.MustCompile(`^[a-z0-9_]{1,60}$`)

// safeCode returns word if it looks like an error code of Slack.
func safeCode(word string) string {
	if safeCodePattern.MatchString(word) {
		return word
	}
	return "an error that has no name"
}
