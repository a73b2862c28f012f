package slack

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/vokter/vokter/pipeline"
)

// threadFor is how long a thread takes further messages.
const threadFor = 24 * time.Hour

// thread is what is noted of the thread of a document.
type thread struct {
	// For is the channel as it is configured, Channel its ID as Slack told it.
	For     string `json:"for"`
	Channel string `json:"channel"`
	TS      string `json:"ts"`
	// Since is when the thread began, in seconds.
	Since int64 `json:"since"`
	// Replied says that there was a reply, which was shown in the channel too.
	Replied bool `json:"replied,omitempty"`
}

// postAsBot posts m to the channel, within the thread of its document if there is one.
func (s *Slack) postAsBot(ctx context.Context, m message) error {
	attempt := pipeline.AttemptFrom(ctx)
	if !s.thread || attempt.Document() == "" {
		_, err := s.call(ctx, m, place{channel: s.channel}, false)
		return err
	}
	if t, ok := s.noted(attempt); ok {
		err := s.reply(ctx, attempt, m, t)
		_, locked := errors.AsType[*threadError](err)
		// A channel that is gone may have left its name to another one.
		if class, _ := pipeline.ClassOf(err); !locked && class != pipeline.ClassGone {
			return err
		}
		attempt.SetNote("")
	}
	p, err := s.call(ctx, m, place{channel: s.channel}, false)
	if err == nil {
		s.note(attempt, s.begun(p))
	}
	return err
}

// reply posts m in the thread t. Slack posts what answers a deleted message at the top
// level; a new thread begins with that.
func (s *Slack) reply(ctx context.Context, attempt pipeline.Attempt, m message, t thread) error {
	p, err := s.call(ctx, m, place{t.Channel, t.TS}, !t.Replied)
	switch {
	case err != nil:
		return err
	case p.thread == "":
		s.note(attempt, s.begun(p))
	case !t.Replied:
		t.Replied = true
		s.note(attempt, t)
	}
	return nil
}

// begun is the thread that begins with p.
func (s *Slack) begun(p posted) thread {
	return thread{For: s.channel, Channel: p.channel, TS: p.ts, Since: s.post.Now().Unix()}
}

// noted returns the thread to answer in.
func (s *Slack) noted(attempt pipeline.Attempt) (t thread, ok bool) {
	note := attempt.Note()
	if note == "" || json.Unmarshal([]byte(note), &t) != nil {
		return t, false
	}
	age := s.post.Now().Sub(time.Unix(t.Since, 0))
	return t, t.For == s.channel && t.Channel != "" && t.TS != "" && age < threadFor
}

func (s *Slack) note(attempt pipeline.Attempt, t thread) {
	b, err := json.Marshal(t)
	if err != nil {
		panic("slack: a thread: " + err.Error()) // every field is encodable
	}
	attempt.SetNote(string(b))
}
