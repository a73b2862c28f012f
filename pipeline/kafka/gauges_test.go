package kafka

import (
	"testing"
	"time"

	"github.com/vokter/vokter/pipeline/store"
	"github.com/vokter/vokter/test/kafkatest"
)

// TestWatchedWhileTheDiskIsFull looks at a transport while the copy of a lane is written, which
// waits for the disk: who watches is answered, and other lanes go on.
func TestWatchedWhileTheDiskIsFull(t *testing.T) {
	tr := opened(t, testConfig(kafkatest.Start(t)))
	<-tr.Gained()
	full, release := make(chan struct{}), make(chan struct{})
	written := make(chan error, 1)
	go func() {
		written <- tr.whileOwned(tr.lease(0), func(*store.Batch) error {
			close(full)
			<-release
			return nil
		})
	}()
	<-full
	answered := make(chan struct{})
	go func() {
		defer close(answered)
		if len(tr.Gauges()) == 0 || tr.Epoch("k") == 0 {
			t.Error("nothing is told")
		}
		if err := tr.Ready(); err != nil {
			t.Errorf("it is not ready: %v", err)
		}
		tr.topicOf("in")
	}()
	select {
	case <-answered:
	case <-time.After(guard):
		t.Error("who watches waits for the disk")
	}
	close(release)
	<-answered
	if err := <-written; err != nil {
		t.Error(err)
	}
}
