package web

import (
	"fmt"
	"strings"
	"time"

	"github.com/vokter/vokter/config"
	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/flow"
)

// actions are what the buttons do. Each asks the API and returns what to tell the user.
var actions = map[string]func(*request) (string, error){
	"subscribe": subscribeFromForm,
	"watch":     watchURL,
	"password": func(r *request) (string, error) {
		note := "The password is set. It logs in like the token."
		if r.form.Get("password") == "" {
			note = "There is no password any more."
		}
		return note, r.api.SetPassword(r.Context(), r.form.Get("password"))
	},
	"check": func(r *request) (string, error) {
		return "The page is checked now. What the check finds shows here when it is done.", r.api.CheckNow(r.Context(), r.form.Get("url"))
	},
	"pause": func(r *request) (string, error) {
		var until time.Time
		if s := r.form.Get("for"); s != "" {
			length, err := config.ParseDuration(s)
			if err != nil {
				return "", &pipeline.FieldError{Field: "for", Reason: err.Error()}
			}
			until = time.Now().Add(length).UTC().Truncate(time.Second)
		}
		return "Paused " + describeTarget(r) + ".", r.api.Pause(r.Context(), r.form.Get("url"), r.form.Get("client"), until)
	},
	"resume": func(r *request) (string, error) {
		return "Resumed " + describeTarget(r) + ".", r.api.Resume(r.Context(), r.form.Get("url"), r.form.Get("client"))
	},
	"cancel": func(r *request) (string, error) {
		if r.form.Get("sure") == "" {
			return "", &pipeline.FieldError{Field: "sure", Reason: "mark the box to cancel a subscription; its pending notifications are dropped"}
		}
		return "Cancelled " + describeTarget(r) + ".", r.api.Cancel(r.Context(), r.form.Get("url"), r.form.Get("client"))
	},
	"retry": func(r *request) (string, error) {
		done, err := r.api.Retry(r.Context(), flow.RetryFilter{Sink: r.form.Get("sink")})
		if err == nil && len(done) == 0 {
			return "No notification waits for " + r.form.Get("sink") + ".", nil
		}
		waiting := 0
		for _, d := range done {
			waiting += d.Waiting
		}
		return fmt.Sprintf("%s is tried now, with %s.", r.form.Get("sink"), countNoun(waiting, "notification")), err
	},
	"test": func(r *request) (string, error) {
		t, err := r.api.TestSink(r.Context(), r.form.Get("sink"))
		if err == nil && !t.Delivered {
			return "The test message of " + r.form.Get("sink") + " was not delivered: " + sentence(t.Reason), nil
		}
		return "The test message of " + r.form.Get("sink") + " is delivered.", err
	},
	"pause-receiver": func(r *request) (string, error) {
		return "Paused " + r.form.Get("sink") + ". What it is told waits.", pauseSink(r, true)
	},
	"resume-receiver": func(r *request) (string, error) {
		return r.form.Get("sink") + " is told again, also of what has waited.", pauseSink(r, false)
	},
	"remove-receiver": func(r *request) (string, error) {
		if r.form.Get("sure") == "" {
			return "", &pipeline.FieldError{Field: "sure", Reason: "mark the box to remove a receiver with its secrets"}
		}
		return "Removed " + r.form.Get("sink") + ".", r.api.RemoveSink(r.Context(), r.form.Get("sink"))
	},
	"replay": func(r *request) (string, error) {
		n, err := r.api.Replay(r.Context(), flow.DeadFilter{Sink: r.form.Get("sink")})
		return fmt.Sprintf("%s delivered again.", countNoun(n, "dead letter is", "dead letters are")), err
	},
}

// describeTarget says which subscriptions an action is about.
func describeTarget(r *request) string {
	if c := r.form.Get("client"); c != "" {
		return "the subscriptions of " + c
	}
	return "the subscriptions of all clients"
}

// runAction carries out the action of a form and sends the browser back.
func runAction(r *request) (any, error) {
	do := actions[r.PathValue("action")]
	if do == nil {
		return nil, &flow.Refusal{Code: flow.CodeNotFound, Message: "there is no such action"}
	}
	note, err := do(r)
	if err != nil {
		return nil, err
	}
	return nil, &redirect{localPath(r.form.Get("back")), note}
}

// countNoun returns "1 page" or "2 pages".
func countNoun(n int, one string, many ...string) string {
	word := one
	if n != 1 {
		word = strings.Join(append(many, one+"s")[:1], "")
	}
	return fmt.Sprintf("%d %s", n, word)
}
