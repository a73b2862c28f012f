package watermill_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/flow"
	"github.com/vokter/vokter/pipeline/pipelinetest"
	"github.com/vokter/vokter/sources/watermill"
)

// fakeQueue is a topic that gives one message after the other, each until it is acknowledged.
type fakeQueue struct {
	mu   sync.Mutex
	all  []*message.Message
	next int
	more chan struct{}
}

func newFakeQueue() *fakeQueue { return &fakeQueue{more: make(chan struct{}, 1)} }

func (q *fakeQueue) add(ms ...*message.Message) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.all = append(q.all, ms...)
	select {
	case q.more <- struct{}{}:
	default:
	}
}

// front returns a copy of the message to give now, or nil.
func (q *fakeQueue) front() *message.Message {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.next == len(q.all) {
		return nil
	}
	return q.all[q.next].Copy()
}

func (q *fakeQueue) Subscribe(ctx context.Context, topic string) (<-chan *message.Message, error) {
	if topic != "pages" {
		return nil, errors.New("no such topic")
	}
	out := make(chan *message.Message)
	go func() {
		defer close(out)
		for ctx.Err() == nil {
			m := q.front()
			if m == nil {
				select {
				case <-q.more:
				case <-ctx.Done():
				}
				continue
			}
			select {
			case out <- m:
			case <-ctx.Done():
				return
			}
			select {
			case <-m.Acked():
				q.mu.Lock()
				q.next++
				q.mu.Unlock()
			case <-m.Nacked():
			}
		}
	}()
	return out, nil
}

func (q *fakeQueue) Close() error { return nil }

func TestSource(t *testing.T) {
	pipelinetest.TestSource(t, func(*testing.T) pipelinetest.Upstream {
		q, n := newFakeQueue(), 0
		return pipelinetest.Upstream{
			New: func(*testing.T) pipeline.Source {
				return watermill.New(watermill.Config{Subscriber: q, Topic: "pages"})
			},
			Send: func(_ *testing.T, ps ...pipeline.Pushed) {
				for _, p := range ps {
					n++
					m := message.NewMessage(fmt.Sprint(n), p.Body)
					if p.URL != "" {
						m.Metadata.Set("url", p.URL)
						m.Metadata.Set("Content-Type", p.ContentType)
					}
					q.add(m)
				}
			},
		}
	})
}

// TestRefused has a page that is not taken: Run says so, and ends its subscription.
func TestRefused(t *testing.T) {
	q, refused := newFakeQueue(), errors.New("not now")
	q.add(message.NewMessage("7", nil))
	s, calls := watermill.New(watermill.Config{Subscriber: q, Topic: "pages"}), 0
	err := s.Run(t.Context(), func(context.Context, pipeline.Pushed) error {
		calls++
		return refused
	})
	if calls != 1 || !errors.Is(err, refused) || !strings.Contains(err.Error(), "message 7 was not taken") {
		t.Errorf("Run returned %v after %d calls, want one that names the message", err, calls)
	}
	if m := q.front(); m == nil || m.UUID != "7" {
		t.Errorf("the next message is %v, want the one that was refused", m)
	}
}

func TestPage(t *testing.T) {
	m := message.NewMessage("uuid", []byte("x"))
	for name, value := range map[string]string{
		"ce_subject": "https://a.example/", "url": "https://b.example/", "Content-Type": "text/html", "content-language": "de",
		"CE_ID": "7", "ce_time": "2026-11-21T10:00:00Z", "traceparent": "t",
	} {
		m.Metadata.Set(name, value)
	}
	p := watermill.Page(m)
	if p.URL != "https://a.example/" || p.ContentType != "text/html" || p.ContentLanguage != "de" || p.ID != "7" ||
		!p.Time.Equal(time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)) || p.Header[flow.HeaderTrace] != "t" || string(p.Body) != "x" {
		t.Errorf("got %+v", p)
	}
}

func TestWhatItNeeds(t *testing.T) {
	if watermill.New(watermill.Config{Topic: "pages"}).Validate() == nil || watermill.New(watermill.Config{Subscriber: newFakeQueue()}).Validate() == nil {
		t.Error("it needs nothing")
	}
	err := watermill.New(watermill.Config{Subscriber: newFakeQueue(), Topic: "others"}).Run(t.Context(), func(context.Context, pipeline.Pushed) error { return nil })
	if err == nil {
		t.Error("a subscription that fails is no error")
	}
	ended := newFakeQueue()
	s := watermill.New(watermill.Config{Subscriber: closedQueue{ended}, Topic: "pages"})
	if err := s.Run(t.Context(), func(context.Context, pipeline.Pushed) error { return nil }); err == nil {
		t.Error("a subscription that ends is no error")
	}
}

// closedQueue ends each subscription at once.
type closedQueue struct{ *fakeQueue }

func (closedQueue) Subscribe(context.Context, string) (<-chan *message.Message, error) {
	c := make(chan *message.Message)
	close(c)
	return c, nil
}
