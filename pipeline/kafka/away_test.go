package kafka

import (
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kfake"
)

// TestBrokersAway: that brokers went away while the Transport works is what Ready says, and one
// warning.
func TestBrokersAway(t *testing.T) {
	cluster, err := kfake.NewCluster(kfake.NumBrokers(1))
	if err != nil {
		t.Fatal(err)
	}
	defer cluster.Close()
	var logged logBuffer
	c := testConfig(cluster.ListenAddrs())
	c.Topics, c.Logger = movedTopics, logged.logger()
	tr, err := Open(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	<-tr.Gained()
	cluster.Close()
	for tr.Ready() == nil && t.Context().Err() == nil {
	}
	ready := tr.Ready()
	if err := tr.Close(); err != nil {
		t.Logf("closing without brokers: %v", err)
	}
	mention(t, ready.Error(), "kafka: ", "(for ")
	if n := strings.Count(logged.String(), "level=WARN"); n != 1 {
		t.Errorf("%d warnings: %s", n, logged.String())
	}
}
