// Package client asks a running vokter-stream process over its management API, which docs/api.md
// describes. The verbs of the command line use it too.
package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/vokter/vokter/inspect"
	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/flow"
)

// Client asks one process. Its methods may be called concurrently. They return the errors that the
// methods of a vokter.Router return in the same case, and a *Problem otherwise.
type Client struct {
	base, token string
	http        *http.Client
}

// Unix begins the address of a process that listens at a Unix socket; the path of the socket follows.
const Unix = "unix:"

// New returns a Client of the process at server: a URL such as https://vokter.example.com, an address such as
// 127.0.0.1:9000, which is asked over plain HTTP, or Unix and the path of a socket. The process must accept token.
func New(server, token string) *Client {
	dial := (&net.Dialer{Timeout: 5 * time.Second}).DialContext
	if path, ok := strings.CutPrefix(server, Unix); ok {
		server = "localhost"
		tcp := dial
		dial = func(ctx context.Context, _, _ string) (net.Conn, error) { return tcp(ctx, "unix", path) }
	}
	if !strings.Contains(server, "://") {
		server = "http://" + server
	}
	return &Client{strings.TrimSuffix(server, "/"), token, &http.Client{
		Transport: &http.Transport{
			DialContext:           dial,
			TLSHandshakeTimeout:   5 * time.Second,
			ResponseHeaderTimeout: 10 * time.Minute, // a large replay or backup takes long
			DisableCompression:    true,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// Over returns a Client whose requests are answered by transport, which knows who asks. It serves a
// program that has the API in its own process.
func Over(transport http.RoundTripper) *Client {
	return &Client{base: "http://localhost", http: &http.Client{Transport: transport}}
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

// List returns the pages and receivers that f selects. It asks for pages until it has all.
func (c *Client) List(ctx context.Context, f inspect.ListFilter) (inspect.Listing, error) {
	l := inspect.Listing{Pages: []inspect.Page{}}
	for f.Limit = listLimit; ; {
		part, err := c.Pages(ctx, f)
		if err != nil {
			return inspect.Listing{}, err
		}
		l.Pages = append(l.Pages, part.Pages...)
		if f.After = part.Next; f.After == "" {
			break
		}
	}
	all := f
	all.Sinks = true // a subscription may name a sink that no notification was ever meant for
	var err error
	if l.Receivers, err = c.Receivers(ctx, all); err != nil {
		return inspect.Listing{}, err
	}
	if !f.Sinks {
		l.Receivers = slices.DeleteFunc(l.Receivers, func(r inspect.Receiver) bool { return !r.Used && !isSinkNamed(l.Pages, r.Sink) })
	}
	return l, nil
}

// isSinkNamed reports whether a subscription in pages is delivered to sink.
func isSinkNamed(pages []inspect.Page, sink string) bool {
	return slices.ContainsFunc(pages, func(p inspect.Page) bool {
		return slices.ContainsFunc(p.Subscriptions, func(s inspect.Subscription) bool { return slices.Contains(s.Sinks, sink) })
	})
}

// Receivers returns the receivers that the fields URL, Client, Tag and Sinks of f select.
func (c *Client) Receivers(ctx context.Context, f inspect.ListFilter) ([]inspect.Receiver, error) {
	var receivers Receivers
	f = inspect.ListFilter{URL: f.URL, Client: f.Client, Tag: f.Tag, Sinks: f.Sinks}
	err := c.get(ctx, "/receivers", query(f), &receivers)
	return receivers.Receivers, err
}

// listLimit is how many pages List asks for at once.
const listLimit = 1000

// Pages returns the part of the list of pages that f selects. Field After of f is the cursor Next
// of the part before; it is empty for the first part. Field Sinks has no meaning.
func (c *Client) Pages(ctx context.Context, f inspect.ListFilter) (p Pages, err error) {
	f.Sinks = false
	return p, c.get(ctx, "/pages", query(f), &p)
}

// Explain returns what the last checks of the page of url found and which notifications followed.
func (c *Client) Explain(ctx context.Context, url string, f inspect.ExplainFilter) (e inspect.Explanation, err error) {
	return e, c.get(ctx, "/explain", query(f, "url", url), &e)
}

// Subscriptions returns the part of the list of subscriptions that f selects.
func (c *Client) Subscriptions(ctx context.Context, f SubscriptionFilter) (s Subscriptions, err error) {
	return s, c.get(ctx, "/subscriptions", query(f), &s)
}

// Deliveries returns the notifications of the last changes with their deliveries, the newest first:
// those of one page, or, if page is empty, the part of all that f selects as for [Client.Recent]. Field
// Tag of f has no meaning.
func (c *Client) Deliveries(ctx context.Context, page string, f inspect.RecentFilter) (d Deliveries, err error) {
	f.Tag = ""
	return d, c.get(ctx, "/deliveries", query(f, "url", page), &d)
}

// Subscribe adds a subscription. It reports created false where the client has the same one already.
func (c *Client) Subscribe(ctx context.Context, s pipeline.Subscription) (created bool, err error) {
	status, err := c.postJSON(ctx, "/subscriptions", s, new(Target))
	return status == http.StatusCreated, err
}

// Apply makes list all subscriptions of the list called origin.
func (c *Client) Apply(ctx context.Context, origin string, list []pipeline.Subscription) (flow.ApplyReport, error) {
	if list == nil {
		list = []pipeline.Subscription{} // nil would be null
	}
	b, err := json.Marshal(list)
	if err != nil {
		return flow.ApplyReport{}, err
	}
	return c.ApplyFrom(ctx, origin, bytes.NewReader(b), false)
}

// ApplyFrom is Apply of a list in JSON. With dryRun it changes nothing, and the report says what would change.
func (c *Client) ApplyFrom(ctx context.Context, origin string, list io.Reader, dryRun bool) (done flow.ApplyReport, err error) {
	q := url.Values{"origin": {origin}}
	if dryRun {
		q.Set("dry_run", "true")
	}
	_, err = c.send(ctx, http.MethodPut, "/subscriptions?"+q.Encode(), list, &done)
	return done, err
}

// Change replaces the subscription of s.Client to a document, given by its ID, by s.
func (c *Client) Change(ctx context.Context, document string, s pipeline.Subscription) error {
	return c.post(ctx, "/subscriptions/change", Changed{document, s}, nil)
}

// Preview fetches the page of s once and returns the text that s would watch. With source it also
// returns the body of the page.
func (c *Client) Preview(ctx context.Context, s pipeline.Subscription, source bool) (p inspect.Preview, err error) {
	return p, c.post(ctx, "/preview", PreviewRequest{s, source}, &p)
}

// Pause ends the subscriptions of client on the page of url until the time until, or until Resume
// restarts them if that is earlier or until is zero.
func (c *Client) Pause(ctx context.Context, url, client string, until time.Time) error {
	return c.post(ctx, "/pause", Pause{Target{url, client}, until}, nil)
}

// CheckNow makes the page of url due now, and does not wait for the check.
func (c *Client) CheckNow(ctx context.Context, url string) error {
	return c.post(ctx, "/check", PageRef{url}, nil)
}

// Cancel ends the subscriptions of client on the page of url.
func (c *Client) Cancel(ctx context.Context, url, client string) error {
	return c.post(ctx, "/cancel", Target{url, client}, nil)
}

// Resume restarts the expired and paused subscriptions of client on the page of url, or those of all clients
// where client is empty.
func (c *Client) Resume(ctx context.Context, url, client string) error {
	return c.post(ctx, "/resume", Target{url, client}, nil)
}

// Retry attempts the pending notifications of the receivers that f selects, and returns these
// receivers.
func (c *Client) Retry(ctx context.Context, f flow.RetryFilter) ([]flow.Retried, error) {
	var done RetriedReceivers
	err := c.post(ctx, "/retry", f, &done)
	return done.Receivers, err
}

// TestSink sends a test message through a sink.
func (c *Client) TestSink(ctx context.Context, sink string) (t SinkTest, err error) {
	return t, c.post(ctx, "/sinks/test", SinkRef{sink}, &t)
}

// SinkKinds returns the kinds of sinks that PutSink takes.
func (c *Client) SinkKinds(ctx context.Context) ([]SinkKind, error) {
	var k SinkKinds
	err := c.get(ctx, "/sinks/kinds", nil, &k)
	return k.Kinds, err
}

// Sinks returns the sinks that were made at run time, without their secrets.
func (c *Client) Sinks(ctx context.Context) ([]Sink, error) {
	var s Sinks
	err := c.get(ctx, "/sinks", nil, &s)
	return s.Sinks, err
}

// PutSink makes a sink, or replaces one that was made at run time.
func (c *Client) PutSink(ctx context.Context, s Sink) error {
	b, err := json.Marshal(s)
	if err != nil {
		return err
	}
	_, err = c.send(ctx, http.MethodPut, "/sinks", bytes.NewReader(b), nil)
	return err
}

// RemoveSink removes a sink that was made at run time and that no subscription names.
func (c *Client) RemoveSink(ctx context.Context, sink string) error {
	return c.post(ctx, "/sinks/remove", SinkRef{sink}, nil)
}

// SetPassword sets the password of the web page. An empty one removes it.
func (c *Client) SetPassword(ctx context.Context, password string) error {
	return c.post(ctx, "/password", Password{password}, nil)
}

// RenewToken replaces the token of the data directory and returns the new one.
func (c *Client) RenewToken(ctx context.Context) (string, error) {
	var t Token
	err := c.post(ctx, "/token", struct{}{}, &t)
	return t.Token, err
}

// DeadLetters returns the dead letters that f selects, the oldest first.
func (c *Client) DeadLetters(ctx context.Context, f flow.DeadFilter) ([]flow.DeadLetter, error) {
	found := []flow.DeadLetter{}
	for cursor := ""; ; {
		part, err := c.DeadLettersPart(ctx, f, cursor, listLimit)
		if err != nil {
			return nil, err
		}
		found = append(found, part.DeadLetters...)
		if cursor = part.Next; cursor == "" {
			return found, nil
		}
	}
}

// DeadLettersPart returns at most limit of the dead letters that f selects. Cursor is the field Next
// of the part before; it is empty for the first part.
func (c *Client) DeadLettersPart(ctx context.Context, f flow.DeadFilter, cursor string, limit int) (part DeadLetters, err error) {
	messages := ""
	if f.Messages {
		messages = "true"
	}
	return part, c.get(ctx, "/dead-letters", query(f, "messages", messages, "cursor", cursor, "limit", strconv.Itoa(limit)), &part)
}

// Replay queues the dead letters that f selects for delivery again and returns how many.
func (c *Client) Replay(ctx context.Context, f flow.DeadFilter) (int, error) {
	var done Replayed
	err := c.post(ctx, "/replay", f, &done)
	return done.Replayed, err
}

// Backup writes a consistent copy of the store to w, as vokter.UnpackBackup reads it. If it fails, w holds an
// incomplete copy.
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

// query returns the fields of filter that are not empty, under their names in JSON, and pairs of further names and
// values.
func query(filter any, pairs ...string) url.Values {
	b, err := json.Marshal(filter)
	if err != nil {
		panic(err) // cannot happen: filters are flat
	}
	fields := make(map[string]any)
	in := json.NewDecoder(bytes.NewReader(b))
	in.UseNumber() // a float would lose digits
	if err := in.Decode(&fields); err != nil {
		panic(err) // cannot happen: it is an object
	}
	for i := 0; i < len(pairs); i += 2 {
		fields[pairs[i]] = pairs[i+1]
	}
	q := make(url.Values)
	for name, v := range fields {
		if v != "" {
			q.Set(name, fmt.Sprint(v))
		}
	}
	return q
}

func (c *Client) get(ctx context.Context, path string, q url.Values, into any) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, c.base+Prefix+path+"?"+q.Encode(), nil)
	if err != nil {
		return err
	}
	_, err = c.doJSON(r, into)
	return err
}

func (c *Client) post(ctx context.Context, path string, body, into any) error {
	_, err := c.postJSON(ctx, path, body, into)
	return err
}

// postJSON is post with the status of the response.
func (c *Client) postJSON(ctx context.Context, path string, body, into any) (status int, err error) {
	b, err := json.Marshal(body)
	if err != nil {
		return 0, err
	}
	return c.send(ctx, http.MethodPost, path, bytes.NewReader(b), into)
}

// send sends a body in JSON and decodes the response.
func (c *Client) send(ctx context.Context, method, path string, body io.Reader, into any) (status int, err error) {
	r, err := http.NewRequestWithContext(ctx, method, c.base+Prefix+path, body)
	if err != nil {
		return 0, err
	}
	r.Header.Set("Content-Type", mediaJSON)
	return c.doJSON(r, into)
}

// doJSON sends r and decodes the response, if it has a body, into into.
func (c *Client) doJSON(r *http.Request, into any) (status int, err error) {
	resp, err := c.do(r, mediaJSON)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	if isEmptySuccess(resp) {
		return resp.StatusCode, nil
	}
	if err := json.NewDecoder(resp.Body).Decode(into); err != nil {
		return 0, fmt.Errorf("the answer of the process at %s cannot be read: %w", r.Host, err)
	}
	return resp.StatusCode, nil
}

// isEmptySuccess reports whether resp is a success without a body.
func isEmptySuccess(resp *http.Response) bool {
	return resp.StatusCode == http.StatusNoContent || resp.StatusCode == http.StatusAccepted
}

// do sends r. It returns the response if it is a success without a body or with the given media
// type, and otherwise the error in it.
func (c *Client) do(r *http.Request, media string) (*http.Response, error) {
	r.Header.Set("Authorization", "Bearer "+c.token)
	resp, err := c.http.Do(r)
	if err != nil {
		if failed, ok := errors.AsType[*url.Error](err); ok {
			err = failed.Err // leave out method and URL: the user typed neither
		}
		if errors.Is(err, http.ErrSchemeMismatch) {
			err = fmt.Errorf("%w; it speaks plain HTTP: ask http://%s", err, r.URL.Host)
		}
		return nil, fmt.Errorf("the process at %s does not answer: %w", r.URL.Host, err)
	}
	success := resp.StatusCode < http.StatusMultipleChoices
	if success && (isEmptySuccess(resp) || resp.Header.Get("Content-Type") == media) {
		return resp, nil
	}
	defer resp.Body.Close()
	var p Problem
	b, err := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	if err != nil || resp.Header.Get("Content-Type") != mediaProblem || json.Unmarshal(b, &p) != nil {
		if resp.StatusCode == http.StatusBadRequest && wantsTLS(b) {
			return nil, fmt.Errorf("the process at %s speaks HTTPS: ask https://%[1]s", r.URL.Host)
		}
		return nil, fmt.Errorf("the process at %s has no such API; it answered %s", r.URL.Host, resp.Status)
	}
	return nil, p.routerError(r.URL.Host)
}

// wantsTLS reports whether body is what a server of HTTPS answers to a request over plain HTTP: one in Go,
// nginx or Apache.
func wantsTLS(body []byte) bool {
	s := strings.ToLower(string(body))
	return strings.Contains(s, "an http request to an https server") ||
		strings.Contains(s, "the plain http request was sent to https port") ||
		strings.Contains(s, "speaking plain http to an ssl-enabled server port")
}

const (
	mediaJSON    = "application/json"
	mediaProblem = "application/problem+json"
	mediaTar     = "application/x-tar"
)

// Error returns what is wrong, in words for the user.
func (p *Problem) Error() string {
	says := []string{p.Detail}
	for _, e := range p.Errors {
		says = append(says, strings.TrimPrefix(e.Location+": "+e.Message, ": "))
	}
	return strings.Join(says, "; ")
}

// routerError returns the error that a Router returns in the same case.
func (p *Problem) routerError(host string) error {
	switch p.Type {
	case ProblemNotFound:
		return &flow.Refusal{Code: flow.CodeNotFound, Message: p.Error()}
	case ProblemConflict:
		return &flow.Refusal{Code: flow.CodeConflict, Message: p.Error()}
	case ProblemBusy:
		return remoteError{flow.ErrBusy, p.Error()}
	case ProblemElsewhere:
		return remoteError{inspect.ErrElsewhere, p.Error()}
	case ProblemUnauthorized:
		return remoteError{p, fmt.Sprintf("the process at %s refuses the token", host)}
	}
	return p
}

// remoteError is an error of package vokter with the message of the process that returned it.
type remoteError struct {
	error
	message string
}

func (r remoteError) Error() string { return r.message }
func (r remoteError) Unwrap() error { return r.error }

// Ready returns nil while the process is at work, and otherwise an error that says why it is not.
func (c *Client) Ready(ctx context.Context) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, c.base+"/readyz", nil)
	if err != nil {
		return err
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	reason, err := io.ReadAll(io.LimitReader(resp.Body, 1<<10))
	if err != nil {
		return err
	}
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("it is not at work: %s", strings.TrimSpace(string(reason)))
	}
	return nil
}
