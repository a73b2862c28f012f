package kafka

import (
	"context"
	"fmt"
	"sync"

	"github.com/vokter/vokter/pipeline/flow"
	"github.com/vokter/vokter/pipeline/kafka/cluster"
)

// registeredSchemas are the IDs of the schemas of the sink's records. The first delivery registers them.
type registeredSchemas struct {
	mu  sync.Mutex
	ids cluster.SchemaIDs
}

// value returns the value of the record for e: its JSON, with the ID of its schema in front of it where there is a
// Schema Registry.
func (r *registeredSchemas) value(ctx context.Context, c cluster.Config, e flow.Message) ([]byte, error) {
	if c.SchemaRegistry.URL == "" {
		return e.Body, nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := ctx.Err(); err != nil { // another delivery waited for the registry in vain
		return nil, fmt.Errorf("kafka: %w", err)
	}
	if r.ids == nil {
		ids, err := c.RegisterSchemas(ctx, []string{flow.TypeNotification, flow.TypeChange})
		if err != nil {
			return nil, fmt.Errorf("kafka: %w", err)
		}
		r.ids = ids
	}
	return r.ids.Frame(e.Type, e.Body), nil
}
