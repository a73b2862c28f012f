// Package slackapp carries out what people ask for in Slack: by the buttons of a notification, and
// by the command /vokter. Slack sends both as requests that it signs.
package slackapp

import (
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/vokter/vokter/inspect"
	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/registry"
)

// Service is the part of a Router that people in Slack can use.
type Service interface {
	Subscribe(ctx context.Context, s pipeline.Subscription) error
	Cancel(ctx context.Context, url, client string) error
	Pause(ctx context.Context, url, client string, until time.Time) error
	Resume(ctx context.Context, url, client string) error
	Pages(ctx context.Context, f inspect.ListFilter) (pages []inspect.Page, next string, err error)
}

// Path is the path of the requests. The name of the sink follows it.
const Path = "/slack/"

const (
	// maxSignatureAge is how old a signature may be, and by how much the clock of Slack may be ahead.
	maxSignatureAge = 5 * time.Minute
	// maxBody bounds a request. That of a button has the message, too.
	maxBody = 512 << 10
	// maxConcurrent is how many requests are carried out at the same time, each for at most requestTimeout.
	// Slack wants an answer within three seconds, so it gets that before.
	maxConcurrent  = 16
	requestTimeout = 20 * time.Second
)

// Settings are the sinks in which people can act. They can be replaced at any time.
type Settings struct {
	sinks atomic.Pointer[map[string]pipeline.Sink]
}

// Configure replaces the sinks by those of a configuration.
func (s *Settings) Configure(sinks map[string]pipeline.Sink) { s.sinks.Store(&sinks) }

// app returns the sink of name. ok is false if nobody can act in it.
func (s *Settings) app(name string) (a app, ok bool) {
	sinks := s.sinks.Load()
	if sinks == nil {
		return app{}, false
	}
	sink, ok := registry.ActingOf((*sinks)[name])
	if !ok || sink.SigningSecret() == "" {
		return app{}, false
	}
	return app{ActingSink: sink, name: name, sinks: *sinks}, true
}

// app is one sink in which people can act.
type app struct {
	registry.ActingSink
	name  string
	sinks map[string]pipeline.Sink
}

// notifies reports whether s notifies the channel, which is given by its ID and its name: its sink
// is this one or a route to it, and its channel is that one.
func (a app) notifies(s pipeline.Subscription, id, name string) bool {
	channel := cmp.Or(s.Channel, a.Home())
	if channel != id && (name == "" || strings.TrimPrefix(channel, "#") != name) {
		return false
	}
	return a.isReached(s.Sinks, len(a.sinks))
}

// isReached reports whether notifications for sinks reach this one. most bounds how far routes are
// followed.
func (a app) isReached(sinks []string, most int) bool {
	return slices.ContainsFunc(sinks, func(name string) bool {
		if name == a.name {
			return true
		}
		route, ok := registry.RouteOf(a.sinks[name])
		return ok && most > 0 && a.isReached(route.Targets(), most-1)
	})
}

// Handler serves the requests of Slack.
type Handler struct {
	settings *Settings
	service  Service
	log      *slog.Logger
	now      func() time.Time
	replays  *replayGuard
	slots    chan struct{}
}

// New returns a handler of the paths below Path.
func New(settings *Settings, service Service, log *slog.Logger) *Handler {
	return &Handler{settings: settings, service: service, log: log, now: time.Now, replays: newReplayGuard(time.Now()), slots: make(chan struct{}, maxConcurrent)}
}

// ServeHTTP checks that a request is signed by Slack, answers it, and carries it out afterwards. The
// result goes to the person who asked.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a, ok := h.settings.app(strings.TrimPrefix(r.URL.Path, Path))
	switch {
	case !ok:
		http.NotFound(w, r)
		return
	case r.Method != http.MethodPost:
		w.Header().Set("Allow", http.MethodPost)
		http.Error(w, "Slack sends POST requests here", http.StatusMethodNotAllowed)
		return
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err != nil {
		http.Error(w, "the request is too large, or broke off", http.StatusBadRequest)
		return
	}
	signature, signed, err := verify(a.SigningSecret(), r.Header, body, h.now())
	if err == nil {
		err = h.replays.add(signature, signed, h.now())
	}
	if err != nil {
		h.log.Warn("a request for Slack's buttons was refused", "sink", a.name, "reason", err)
		status := http.StatusUnauthorized
		if errors.Is(err, errTooMany) {
			status = http.StatusServiceUnavailable
		}
		http.Error(w, err.Error(), status)
		return
	}
	req, err := parseRequest(body, h.now())
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	if req.run == nil {
		return // nothing to do, such as for a button that is a link
	}
	select {
	case h.slots <- struct{}{}:
	default:
		h.replays.remove(signature)
		http.Error(w, "too many requests at once; try again", http.StatusServiceUnavailable)
		return
	}
	go func() {
		defer func() { <-h.slots }()
		ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), requestTimeout)
		defer cancel()
		said := req.run(ctx, h.service, a)
		h.log.Info("a request from Slack was carried out", "sink", a.name, "user", req.User, "asked", req.description, "answer", said)
		if err := a.Answer(ctx, req.ResponseURL, said); err != nil {
			h.log.Warn("the answer to a request from Slack could not be sent", "sink", a.name, "err", err)
		}
	}()
}

// verify returns the signature of a request and when it was made, or why it is not one that Slack
// signed with secret within the last five minutes:
// https://docs.slack.dev/authentication/verifying-requests-from-slack.
func verify(secret string, header http.Header, body []byte, now time.Time) (signature string, signed time.Time, err error) {
	at := header.Get("X-Slack-Request-Timestamp")
	seconds, err := strconv.ParseInt(at, 10, 64)
	if err != nil {
		return "", signed, errors.New("the request has no timestamp of Slack")
	}
	signed = time.Unix(seconds, 0)
	if age := now.Sub(signed); age > maxSignatureAge || age < -maxSignatureAge {
		return "", signed, errors.New("the timestamp of the request differs from the clock of this machine by more than five minutes")
	}
	given, err := hex.DecodeString(strings.TrimPrefix(header.Get("X-Slack-Signature"), "v0="))
	if err != nil || !strings.HasPrefix(header.Get("X-Slack-Signature"), "v0=") {
		return "", signed, errors.New("the request has no signature of Slack")
	}
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte("v0:" + at + ":"))
	mac.Write(body)
	if !hmac.Equal(mac.Sum(nil), given) {
		return "", signed, errors.New("the signature of the request is wrong; check the signing secret")
	}
	return string(given), signed, nil
}
