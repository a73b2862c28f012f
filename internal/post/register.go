package post

import (
	"net/http"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/registry"
)

// Register makes the configuration know kind, the sinks of type S, whose options are a C.
// build makes one that sends with the client it is given: sinks that may reach the same
// networks share their connections.
func Register[C any, S pipeline.Sink](r *registry.Registry, kind string, build func(C, *http.Client) (S, error)) {
	var clients clients
	r.Sink(kind, func(decode registry.Decode, env registry.Env) (pipeline.Sink, error) {
		var c C
		if err := decode(&c); err != nil {
			return nil, err
		}
		s, err := build(c, clients.of(env.AllowSinks))
		if err != nil {
			return nil, err
		}
		return s, nil
	})
}
