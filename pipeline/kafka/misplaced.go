package kafka

import (
	"cmp"
	"fmt"

	"github.com/vokter/vokter/pipeline/flow"
	"github.com/vokter/vokter/pipeline/kafka/internal/client"
)

// mover is the name under which a lane notes up to where misplaced records of a topic were
// moved, as groups do that handle them: each is moved once, whichever groups there are.
const mover = "\x00mover"

// moveTo makes x move its record into the lane of the record's key, unless it was moved. One
// that is larger than what we may publish goes to the dead letters: its writer packed it.
func (x *tx) moveTo(lane int) {
	m := x.w.record
	o := forwarded(m, x.who.topic, lane)
	x.mu.Lock()
	x.moves = true
	x.mu.Unlock()
	if n := o.size(); n > client.MaxMessage {
		id := cmp.Or(o.uuid, flow.DeriveID("misplaced", x.position()))
		x.ten.t.log.Error("kafka: a message could not be moved to the partition of its key and goes to the dead letters: let its writer partition as Kafka's Java client does, or send less",
			"topic", x.who.topic, "position", x.position(), "id", id, "bytes", n)
		d := flow.DeadLetter{
			Reason: fmt.Sprintf("it stands in partition %d and belongs to partition %d, and its %d bytes are more than the %d that a record may have (its body is not kept)", x.ten.lane, lane, n, client.MaxMessage),
			Time:   x.ten.t.now(), Attempts: 1, Topic: x.who.topic, Headers: o.meta,
		}
		o = outputOf(d.Message(id, string(m.Key), o.meta["ce_subject"]), x.ten.t.lanes)
	}
	x.collect(o)
}

// first reports whether x is the first to move its record, and notes that it did. n.mu is held.
func (n *tenure) first(b *batch, x *tx) bool {
	who := consumer{mover, x.who.topic}
	if n.positions[who] > x.w.record.Offset {
		return false
	}
	n.positions[who] = x.w.record.Offset + 1
	b.positions[who] = x.w.record.Offset + 1
	return true
}
