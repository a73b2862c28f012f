package manage

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"time"

	"github.com/vokter/vokter"
	"github.com/vokter/vokter/inspect"
	"github.com/vokter/vokter/pipeline/flow"
)

func (a *api) pages(w *writer, r *http.Request) error {
	l, err := a.list(r)
	if err != nil {
		return err
	}
	// One after the other: encoded as a whole they would stand in memory twice.
	w.begin(http.StatusOK, mediaJSON)
	if _, err := io.WriteString(w, `{"pages":[`); err != nil {
		return err
	}
	out := json.NewEncoder(w)
	for i, p := range l.Pages {
		if i > 0 {
			if _, err := io.WriteString(w, ","); err != nil {
				return err
			}
		}
		if err := out.Encode(p); err != nil {
			return err
		}
	}
	_, err = io.WriteString(w, "]}\n")
	return err
}

func (a *api) receivers(w *writer, r *http.Request) error {
	l, err := a.list(r)
	if err != nil {
		return err
	}
	if l.Receivers == nil {
		l.Receivers = []inspect.Receiver{}
	}
	return w.reply(receiversBody{l.Receivers})
}

func (a *api) list(r *http.Request) (inspect.Listing, error) {
	q, err := query(r, "url", "client", "sinks")
	if err != nil {
		return inspect.Listing{}, err
	}
	f := inspect.ListFilter{URL: q.Get("url"), Client: q.Get("client")}
	if f.Sinks, err = flag(q, "sinks"); err != nil {
		return inspect.Listing{}, err
	}
	if f.URL != "" {
		if err := checkURL(f.URL); err != nil {
			return inspect.Listing{}, err
		}
	}
	return a.service.List(r.Context(), f)
}

func (a *api) explain(w *writer, r *http.Request) error {
	q, err := query(r, "url", "client", "keyword")
	if err != nil {
		return err
	}
	if err := checkURL(q.Get("url")); err != nil {
		return err
	}
	e, err := a.service.Explain(r.Context(), q.Get("url"), inspect.ExplainFilter{Client: q.Get("client"), Keyword: q.Get("keyword")})
	if err != nil {
		return err
	}
	return w.reply(e)
}

func (a *api) deadLetters(w *writer, r *http.Request) error {
	q, err := query(r, "sink", "client", "url", "since", "messages")
	if err != nil {
		return err
	}
	f := flow.DeadFilter{Sink: q.Get("sink"), Client: q.Get("client"), URL: q.Get("url")}
	if f.Messages, err = flag(q, "messages"); err != nil {
		return err
	}
	if since := q.Get("since"); since != "" {
		if f.Since, err = time.Parse(time.RFC3339Nano, since); err != nil {
			return invalid("since: %q is not a time such as 2026-01-31T15:04:05Z", since)
		}
	}
	if f.URL != "" {
		if err := checkURL(f.URL); err != nil {
			return err
		}
	}
	all, err := a.service.DeadLetters(r.Context(), f)
	if err != nil {
		return err
	}
	if all == nil {
		all = []flow.DeadLetter{}
	}
	return w.reply(lettersBody{all})
}

func (a *api) cancel(w *writer, r *http.Request) error {
	return a.command(w, r, func(ctx context.Context, t targetBody) error {
		if t.Client == "" {
			return invalid("client: it is missing; name whose subscriptions are to end")
		}
		return a.service.Cancel(ctx, t.URL, t.Client)
	})
}

func (a *api) resume(w *writer, r *http.Request) error {
	return a.command(w, r, func(ctx context.Context, t targetBody) error { return a.service.Resume(ctx, t.URL, t.Client) })
}

// command carries out a command about one page.
func (a *api) command(w *writer, r *http.Request, do func(context.Context, targetBody) error) error {
	var t targetBody
	if err := decode(w, r, &t); err != nil {
		return err
	}
	if err := checkURL(t.URL); err != nil {
		return err
	}
	if err := do(r.Context(), t); err != nil {
		return err
	}
	return w.reply(struct{}{})
}

func (a *api) replay(w *writer, r *http.Request) error {
	var f flow.DeadFilter
	if err := decode(w, r, &f); err != nil {
		return err
	}
	if f.URL != "" {
		if err := checkURL(f.URL); err != nil {
			return err
		}
	}
	n, err := a.service.Replay(r.Context(), f)
	if err != nil {
		return err
	}
	return w.reply(replayedBody{n})
}

func (a *api) retry(w *writer, r *http.Request) error {
	var f vokter.RetryFilter
	if err := decode(w, r, &f); err != nil {
		return err
	}
	if f.URL != "" {
		if err := checkURL(f.URL); err != nil {
			return err
		}
	}
	tried, err := a.service.Retry(r.Context(), f)
	if err != nil {
		return err
	}
	return w.reply(retriedBody{tried})
}

func (a *api) backup(w *writer, r *http.Request) error {
	if _, err := query(r); err != nil {
		return err
	}
	select {
	case a.copying <- struct{}{}:
		defer func() { <-a.copying }()
	default:
		return &apiError{http.StatusServiceUnavailable, codeUnavailable, "another backup is being made; try again when it has ended"}
	}
	return a.service.Backup(r.Context(), &tarWriter{w})
}
