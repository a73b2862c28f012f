package offline

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/IBM/sarama"

	"github.com/vokter/vokter/internal/engine"
	"github.com/vokter/vokter/pipeline/kafka/internal/admin"
	"github.com/vokter/vokter/pipeline/kafka/internal/changelog"
	"github.com/vokter/vokter/pipeline/kafka/internal/client"
	"github.com/vokter/vokter/pipeline/portable"
	"github.com/vokter/vokter/pipeline/store"
)

// Export writes the committed state of the groups of c to w. See kafka.Export.
func Export(ctx context.Context, c Config, w *portable.Writer, leave bool) (left []string, err error) {
	s := &session{Config: c}
	defer func() { err = errors.Join(err, s.Close()) }()
	topics, err := s.connectExisting(ctx)
	if err != nil {
		return nil, err
	}
	if err := s.checkUnused(); err != nil {
		return nil, err
	}
	if err := s.takeLanes(ctx, w.Scratch()); err != nil {
		return nil, err
	}
	var owns []changelog.Own // by lane
	x := &exporter{session: s, w: w, lanes: s.lanes}
	var clock time.Time
	for lane := range s.lanes {
		own, err := changelog.ReadOwn(s.stateCopy, lane)
		if err != nil {
			return nil, err
		}
		owns = append(owns, own)
		x.lanes = cmp.Or(own.Topics.Lanes, x.lanes)
		if own.Clock.After(clock) {
			clock = own.Clock
		}
	}
	if left, err = s.describeUnhandled(ctx, owns, topics); err != nil {
		return nil, err
	}
	if len(left) > 0 && !leave {
		return nil, portable.Unhandled(left)
	}
	w.Describe(portable.Manifest{
		StateFormat: store.Format, Transport: "kafka", Lineage: s.lineage, Time: s.Now().UTC(), Clock: clock,
	})
	if err := s.stateCopy.EachState(x.writeState); err != nil {
		return nil, err
	}
	return left, s.checkUntouched(ctx)
}

// connectExisting connects and returns the existing topics.
func (s *session) connectExisting(ctx context.Context) (map[string]admin.Standing, error) {
	var err error
	if s.conn.Client, err = s.Await(ctx, s.Logger, ignoreWaiting); err != nil {
		return nil, err
	}
	if s.conn.Admin, err = sarama.NewClusterAdminFromClient(s.conn.Client); err != nil {
		return nil, fmt.Errorf("kafka: %w", err)
	}
	topics, err := admin.Describe(s.conn.Admin, s.Specs(s.Topics))
	if err != nil {
		return nil, err
	}
	state, ok := topics[s.stateTopic()]
	if !ok {
		return nil, fmt.Errorf("kafka: there is no topic %s: nothing was ever watched with this topic_prefix", s.stateTopic())
	}
	s.lanes, s.lineage = state.Partitions, state.ID
	return topics, nil
}

// exporter writes the contents of the copies of the lanes.
type exporter struct {
	session *session
	w       *portable.Writer
	// lanes is the number of lanes when the state was written.
	lanes int
	// place is the group and key of the last state, in lane.
	place engine.Place
	lane  int
}

// writeState writes a value.
func (x *exporter) writeState(v store.Kept) error {
	if v.Group == changelog.OwnGroup {
		return nil
	}
	if of := (engine.Place{Group: v.Group, Key: v.Key}); of != x.place || v.Lane != x.lane {
		x.place, x.lane = of, v.Lane
		if err := x.checkOneLane(of, v.Lane); err != nil {
			return err
		}
	}
	return x.w.Add(portable.Record{Group: v.Group, Key: v.Key, Name: v.Name, Value: v.Value})
}

// checkOneLane returns an error if a group has state for one key in several lanes. That happens if the
// group keeps state for other keys than those of its messages; after an import a key has only one state.
func (x *exporter) checkOneLane(of engine.Place, lane int) error {
	if lane == client.PartitionOf(of.Key, x.lanes) {
		return nil // a state in another lane is found when that lane is exported
	}
	for other := range x.session.lanes {
		if other == lane {
			continue
		}
		for _, v := range x.session.stateCopy.ScanState(of.Group, other, of.Key, "") {
			if v.Err != nil {
				return v.Err
			}
			return fmt.Errorf("kafka: group %s keeps something for the key %q in lane %d and in lane %d, so that it cannot be moved: "+
				"give its messages keys, and let them be handled in the lanes of these", of.Group, of.Key, min(lane, other), max(lane, other))
		}
	}
	return nil
}
