package kafka

import (
	"context"

	"github.com/vokter/vokter/pipeline/flow"
	"github.com/vokter/vokter/pipeline/kafka/internal/admin"
	"github.com/vokter/vokter/pipeline/kafka/internal/offline"
	"github.com/vokter/vokter/pipeline/portable"
)

// Check compares the cluster of c with what a Transport with topics (names without the
// prefix) needs, and changes nothing. It returns lines for people: the topics that stand, those
// that a start would make, and warnings. The error joins all that a start would refuse, or says
// why the brokers cannot be asked; it comes within 5 s.
func Check(ctx context.Context, c Config, topics map[string]flow.Topic) ([]string, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	return admin.Check(ctx, c.withDefaults().admin(), topics)
}

// Export writes to w what the groups of c keep in Kafka, as it is committed. No process may
// work with the topics meanwhile: Export refuses where one does, and gives up the open
// transaction of one that is frozen. It refuses while a message of c.Topics waits for one of
// its groups, since messages stay behind; with leave it goes on, and returns what is left
// behind, a line for each group and topic. Topics that do not fit any more (see Check) are no
// obstacle. It waits for brokers until ctx is done, and writes nothing to the topics but
// fences. The caller closes w.
func Export(ctx context.Context, c Config, w *portable.Writer, leave bool) (left []string, err error) {
	o, err := c.offline()
	if err != nil {
		return nil, err
	}
	return offline.Export(ctx, o, w, leave)
}

// Import makes the topics of c where they are missing and puts what is in e into them, all of
// it in one transaction or, after an error, nothing. The topics must be empty and no process
// may work with them; one that starts meanwhile waits for the end of the import. The
// transaction may last 15 minutes. The groups go on from new positions. Import waits for
// brokers until ctx is done. Its errors say what to do.
func Import(ctx context.Context, c Config, e *portable.Export) error {
	o, err := c.offline()
	if err != nil {
		return err
	}
	return offline.Import(ctx, o, e)
}

// offline is c for the export and the import of the state.
func (c Config) offline() (offline.Config, error) {
	if err := c.Validate(); err != nil {
		return offline.Config{}, err
	}
	c = c.withDefaults()
	return offline.Config{Config: c.admin(), Topics: c.Topics, Now: c.Now, MemTable: memTable}, nil
}
