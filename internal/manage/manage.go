// Package manage is the management API of a running process: a server over a
// vokter.Router, and a client that offers the same methods to other processes.
package manage

import (
	"context"
	"io"

	"github.com/vokter/vokter"
	"github.com/vokter/vokter/inspect"
	"github.com/vokter/vokter/pipeline/flow"
)

// Manager manages a data directory. It is implemented by a vokter.Router in this process, and
// by a Client of a Router in another process.
type Manager interface {
	Historian
	// List returns pages and receivers with their state.
	List(ctx context.Context, f inspect.ListFilter) (inspect.Listing, error)
	// Explain returns what the last checks of a page found and which notifications followed.
	Explain(ctx context.Context, url string, f inspect.ExplainFilter) (inspect.Explanation, error)
	// Cancel ends the subscriptions of client on the page of url.
	Cancel(ctx context.Context, url, client string) error
	// Resume restarts the expired subscriptions of client on the page of url, or those of all
	// clients where client is empty.
	Resume(ctx context.Context, url, client string) error
	// Retry attempts the pending notifications of the receivers that f selects, and returns
	// these receivers.
	Retry(ctx context.Context, f vokter.RetryFilter) ([]vokter.Retried, error)
	// DeadLetters returns the dead letters that f selects.
	DeadLetters(ctx context.Context, f flow.DeadFilter) ([]flow.DeadLetter, error)
	// Replay queues the dead letters that f selects for delivery again and returns how many.
	Replay(ctx context.Context, f flow.DeadFilter) (int, error)
	// Backup writes a consistent copy of the store to w, as vokter.UnpackBackup reads it.
	Backup(ctx context.Context, w io.Writer) error
}

// Prefix begins the paths of the API.
const Prefix = "/api/v1"

// Process describes the process that answers.
type Process struct {
	// Data is the absolute path of its data directory. It is empty for a process that keeps
	// everything in memory.
	Data string `json:"data"`
	// Lanes counts the lanes that it owns. It is nil if the process owns all lanes or does not
	// know them yet.
	Lanes *Lanes `json:"lanes,omitempty"`
}

// Lanes counts the lanes of a transport that several processes share.
type Lanes struct {
	Owned int `json:"owned"` // by this process
	// Restoring is how many of Owned are not ready, because their state is still being read.
	Restoring int `json:"restoring,omitempty"`
	All       int `json:"all"`
}

// lanesOf returns the lanes in gauges, or nil if there are none.
func lanesOf(gauges []flow.Gauge) *Lanes {
	var l Lanes
	for _, g := range gauges {
		switch g.Name {
		case flow.GaugeLanes:
			l.All = int(g.Value)
		case flow.GaugeLanesOwned:
			l.Owned = int(g.Value)
		case flow.GaugeLanesRestoring:
			l.Restoring = int(g.Value)
		}
	}
	if l.All == 0 {
		return nil
	}
	return &l
}

// Bodies of requests and responses.
type (
	pagesBody struct {
		Pages []inspect.Page `json:"pages"`
	}
	receiversBody struct {
		Receivers []inspect.Receiver `json:"receivers"`
	}
	lettersBody struct {
		DeadLetters []flow.DeadLetter `json:"dead_letters"`
	}
	retriedBody struct {
		Receivers []vokter.Retried `json:"receivers"`
	}
	replayedBody struct {
		Replayed int `json:"replayed"`
	}
	targetBody struct {
		URL    string `json:"url"`
		Client string `json:"client,omitempty"`
	}
	errorBody struct {
		Error failure `json:"error"`
	}
	failure struct {
		Code    string `json:"code"`
		Message string `json:"message"`
	}
)

// Codes of errors.
const (
	codeInvalid      = "invalid"      // 400: the request is malformed
	codeUnauthorized = "unauthorized" // 401: the token is missing or wrong
	codeForbidden    = "forbidden"    // 403: another web site or host sent it, or there is no token
	codeNotFound     = "not_found"    // 404: there is no such page, subscription or route
	codeMethod       = "method"       // 405
	codeConflict     = "conflict"     // 409: the current state does not allow it
	codeElsewhere    = "elsewhere"    // 421: another process owns the page, or none does at the moment
	codeTooLarge     = "too_large"    // 413
	codeMediaType    = "media_type"   // 415
	codeInternal     = "internal"     // 500
	codeBusy         = "busy"         // 503: it was not decided in time; ask again
	codeUnavailable  = "unavailable"  // 503: the pipeline is not ready
)
