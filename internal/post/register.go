package post

import (
	"crypto/sha256"
	"fmt"
	"net/http"
	"os"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/registry"
)

// Register makes r know kind, the sinks of type S that build makes of a C. connection returns
// the Connection in a C: sinks with equal ones share their connections.
func Register[C any, S pipeline.Sink](r *registry.Registry, kind string, connection func(*C) *registry.Connection, build func(C) (S, error)) {
	clients := make(map[string]*http.Client)
	registry.AddSink(r, kind, func(c C, env registry.Env) (S, error) {
		how := connection(&c)
		how.Allow = env.AllowSinks
		key := keyOf(*how)
		if client, ok := clients[key]; ok {
			how.Client = client
		} else if sender, err := NewSender(*how); err == nil { // otherwise build says what is wrong
			clients[key] = sender.Client
			how.Client = sender.Client
		}
		return build(c)
	})
}

// keyOf is the same for connections that can be shared.
func keyOf(c registry.Connection) string {
	var authorities [sha256.Size]byte
	if text, err := os.ReadFile(c.CA); err == nil {
		authorities = sha256.Sum256(text)
	}
	return fmt.Sprintf("%q %x %q %q %q", c.Allow, authorities, c.Cert, c.Key, c.Proxy.Reveal())
}
