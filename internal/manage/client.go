package manage

import (
	"github.com/vokter/vokter/inspect"

	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"time"

	"github.com/vokter/vokter"
	"github.com/vokter/vokter/pipeline/flow"
)

// Client manages the Router of another process over HTTP.
type Client struct {
	base, token string
	http        *http.Client
}

var _ Manager = (*Client)(nil)

// NewClient returns a Client of the process that listens at addr (HOST:PORT) and accepts token.
func NewClient(addr, token string) *Client {
	return &Client{"http://" + addr, token, &http.Client{
		// Without Proxy: both processes are on one machine.
		Transport: &http.Transport{
			DialContext:           (&net.Dialer{Timeout: 5 * time.Second}).DialContext,
			ResponseHeaderTimeout: 10 * time.Minute, // a large replay or backup takes long
			DisableCompression:    true,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// Close closes idle connections.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// probeTimeout is how long a process may take to answer Process.
const probeTimeout = 5 * time.Second

// Process returns the description of the process that answers.
func (c *Client) Process(ctx context.Context) (p Process, err error) {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	return p, c.get(ctx, "/process", nil, &p)
}

// List implements Manager.
func (c *Client) List(ctx context.Context, f inspect.ListFilter) (inspect.Listing, error) {
	q := values("url", f.URL, "client", f.Client)
	if f.Sketches {
		q.Set("sketches", "true")
	}
	if f.Tree {
		q.Set("tree", "true")
	}
	var pages pagesBody
	if err := c.get(ctx, "/pages", q, &pages); err != nil {
		return inspect.Listing{}, err
	}
	q.Del("sketches")
	q.Del("tree")
	if f.Sinks {
		q.Set("sinks", "true")
	}
	var receivers receiversBody
	if err := c.get(ctx, "/receivers", q, &receivers); err != nil {
		return inspect.Listing{}, err
	}
	return inspect.Listing{Pages: pages.Pages, Receivers: receivers.Receivers}, nil
}

// Explain implements Manager.
func (c *Client) Explain(ctx context.Context, url string, f inspect.ExplainFilter) (e inspect.Explanation, err error) {
	return e, c.get(ctx, "/explain", values("url", url, "client", f.Client, "keyword", f.Keyword), &e)
}

// Cancel implements Manager.
func (c *Client) Cancel(ctx context.Context, url, client string) error {
	return c.post(ctx, "/cancel", targetBody{url, client}, &struct{}{})
}

// Resume implements Manager.
func (c *Client) Resume(ctx context.Context, url, client string) error {
	return c.post(ctx, "/resume", targetBody{url, client}, &struct{}{})
}

// Retry implements Manager.
func (c *Client) Retry(ctx context.Context, f vokter.RetryFilter) ([]vokter.Retried, error) {
	var done retriedBody
	err := c.post(ctx, "/retry", f, &done)
	return done.Receivers, err
}

// DeadLetters implements Manager.
func (c *Client) DeadLetters(ctx context.Context, f flow.DeadFilter) ([]flow.DeadLetter, error) {
	q := values("sink", f.Sink, "client", f.Client, "url", f.URL)
	if !f.Since.IsZero() {
		q.Set("since", f.Since.Format(time.RFC3339Nano))
	}
	if f.Messages {
		q.Set("messages", "true")
	}
	var found lettersBody
	err := c.get(ctx, "/dead-letters", q, &found)
	return found.DeadLetters, err
}

// Replay implements Manager.
func (c *Client) Replay(ctx context.Context, f flow.DeadFilter) (int, error) {
	var done replayedBody
	err := c.post(ctx, "/replay", f, &done)
	return done.Replayed, err
}

// Backup implements Manager. If it fails, w holds an incomplete copy.
func (c *Client) Backup(ctx context.Context, w io.Writer) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, c.base+Prefix+"/backup", nil)
	if err != nil {
		return err
	}
	resp, err := c.do(r, mediaTar)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if _, err := io.Copy(w, resp.Body); err != nil {
		return fmt.Errorf("the copy broke off: %w", err)
	}
	return nil
}

// values returns a query of names and values. It leaves out empty values.
func values(pairs ...string) url.Values {
	q := make(url.Values)
	for i := 0; i < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			q.Set(pairs[i], pairs[i+1])
		}
	}
	return q
}

func (c *Client) get(ctx context.Context, path string, q url.Values, into any) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, c.base+Prefix+path+"?"+q.Encode(), nil)
	if err != nil {
		return err
	}
	return c.ask(r, into)
}

func (c *Client) post(ctx context.Context, path string, body, into any) error {
	b, err := json.Marshal(body)
	if err != nil {
		return err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, c.base+Prefix+path, bytes.NewReader(b))
	if err != nil {
		return err
	}
	r.Header.Set("Content-Type", mediaJSON)
	return c.ask(r, into)
}

// ask sends r and decodes the response into into.
func (c *Client) ask(r *http.Request, into any) error {
	resp, err := c.do(r, mediaJSON)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if err := json.NewDecoder(resp.Body).Decode(into); err != nil {
		return fmt.Errorf("the answer of the process at %s cannot be read: %w", r.Host, err)
	}
	return nil
}

// do sends r. It returns the response if it has status 200 and the given media type, and
// otherwise the error in it.
func (c *Client) do(r *http.Request, media string) (*http.Response, error) {
	r.Header.Set("Authorization", "Bearer "+c.token)
	resp, err := c.http.Do(r)
	if err != nil {
		if failed, ok := errors.AsType[*url.Error](err); ok {
			err = failed.Err // leave out method and URL: the user typed neither
		}
		return nil, fmt.Errorf("the process at %s does not answer: %w", r.URL.Host, err)
	}
	if resp.StatusCode == http.StatusOK && resp.Header.Get("Content-Type") == media {
		return resp, nil
	}
	defer resp.Body.Close()
	var e errorBody
	b, err := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	if err != nil || json.Unmarshal(b, &e) != nil || e.Error.Message == "" {
		return nil, fmt.Errorf("the process at %s has no such API; it answered %s", r.URL.Host, resp.Status)
	}
	if e.Error.Code == codeUnauthorized {
		return nil, fmt.Errorf("the process at %s refuses the token in the data directory", r.URL.Host)
	}
	return nil, e.Error.err()
}

// err returns the error that a Router returns in the same case.
func (f failure) err() error {
	switch f.Code {
	case codeNotFound:
		return &flow.Refusal{Code: flow.CodeNotFound, Message: f.Message}
	case codeConflict:
		return &flow.Refusal{Code: flow.CodeConflict, Message: f.Message}
	case codeBusy:
		return remote{vokter.ErrBusy, f.Message}
	case codeElsewhere:
		return remote{inspect.ErrElsewhere, f.Message}
	}
	return errors.New(f.Message)
}

// remote is an error of package vokter with the message of the process that returned it.
type remote struct {
	error
	words string
}

func (r remote) Error() string { return r.words }
func (r remote) Unwrap() error { return r.error }
