package chat

import (
	"net/http"

	"github.com/vokter/vokter/internal/post"
	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/registry"
)

// Config is what stands in the configuration for a sink of type S.
type Config[S pipeline.Sink] interface {
	// Build returns the sink, or the *pipeline.FieldErrors that say what is wrong.
	Build(opts ...Option) (S, error)
}

// Register makes the configuration know kind, whose sinks share their connections.
func Register[C Config[S], S pipeline.Sink](r *registry.Registry, kind string) {
	post.Register(r, kind, func(c C, client *http.Client) (S, error) { return c.Build(withClient(client)) })
}

// withClient makes sinks share their connections. The client has to be one of package
// guard.
func withClient(c *http.Client) Option {
	return func(n *network) { n.client = c }
}
