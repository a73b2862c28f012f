package manage

import (
	"context"
	"errors"
	"net/http"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"github.com/vokter/vokter/config"
	"github.com/vokter/vokter/inspect/client"
)

func (a *api) addBackup() {
	huma.Register(a.API, route{
		method: http.MethodGet, path: "/backup", id: "get-backup", scope: config.ScopeAdmin, allClients: true,
		summary: "Sends a consistent copy of the store as a tar stream", description: "A truncated one is useless. One backup is made at a time.",
		responses: map[string]*huma.Response{"200": {Description: "OK", Content: map[string]*huma.MediaType{mediaTar: {Schema: &huma.Schema{Type: huma.TypeString, Format: "binary"}}}}},
	}.operation(), func(ctx context.Context, _ *struct{}) (*huma.StreamResponse, error) {
		return &huma.StreamResponse{Body: func(c huma.Context) {
			_, w := humago.Unwrap(c)
			a.sendBackup(ctx, w)
		}}, nil
	})
}

// sendBackup sends a backup. It has no bound of time but that of the writer: the client must read.
func (a *api) sendBackup(ctx context.Context, to http.ResponseWriter) {
	select {
	case a.backupSlot <- struct{}{}:
		defer func() { <-a.backupSlot }()
	default:
		to.Header().Set("Retry-After", "5")
		refuse(to, http.StatusServiceUnavailable, client.ProblemUnavailable, "another backup is being made; try again when it has ended")
		return
	}
	w := &tarWriter{ResponseWriter: to}
	err := a.service.Backup(ctx, w)
	switch {
	case err == nil:
	case w.headerSent:
		panic(http.ErrAbortHandler) // so that the client sees that the response is incomplete
	default:
		p := a.toProblem("query", err)
		if h, ok := errors.AsType[huma.HeadersError](p); ok {
			for name, values := range h.GetHeaders() {
				to.Header()[name] = values
			}
		}
		model, _ := errors.AsType[*huma.ErrorModel](p)
		refuse(to, model.Status, model.Type, model.Detail)
	}
}

// tarWriter sends the header of its response with the first byte, so that an error before that
// can still be sent.
type tarWriter struct {
	http.ResponseWriter
	headerSent bool
}

func (w *tarWriter) Write(b []byte) (int, error) {
	if !w.headerSent {
		w.headerSent = true
		w.Header().Set("Content-Type", mediaTar)
		w.WriteHeader(http.StatusOK)
	}
	return w.ResponseWriter.Write(b)
}
