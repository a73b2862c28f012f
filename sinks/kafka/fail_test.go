package kafka

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/IBM/sarama"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/failure"
	kafkacluster "github.com/vokter/vokter/pipeline/kafka/cluster"
	"github.com/vokter/vokter/pipeline/registry"
)

const produceKey = int16(kmsg.Produce)

// TestMissingTopic: the reason names the command, and the next attempt finds what was made.
func TestMissingTopic(t *testing.T) {
	onBoth(t, func(t *testing.T, c Config) {
		s := newTestSink(t, c)
		err := s.Deliver(t.Context(), sample("N"))
		wantErr(t, err, failure.ClassRetry, "there is no topic "+c.Topic, "kafka-topics --bootstrap-server "+strings.Join(c.Brokers, ",")+" --create --topic "+c.Topic)
		if failure.IsAmbiguous(err) {
			t.Error("it is marked as ambiguous")
		}
		makeTopic(t, c, 1, nil)
		if err := s.Deliver(t.Context(), sample("N")); err != nil {
			t.Fatal(err)
		}
		records(t, c, 1)
	})
}

// TestTooLarge: one notification is refused, the next one is not held up.
func TestTooLarge(t *testing.T) {
	onBoth(t, func(t *testing.T, c Config) {
		makeTopic(t, c, 1, map[string]string{"max.message.bytes": "4096"})
		s := newTestSink(t, c)
		n := sample("LARGE")
		n.Diffs[0].Text = strings.Repeat("x", 5000)
		wantErr(t, s.Deliver(t.Context(), n), failure.ClassRefused, "topic "+c.Topic, "max.message.bytes", "--alter")
		n.Diffs[0].Text = strings.Repeat("x", 2<<20)
		wantErr(t, s.Deliver(t.Context(), n), failure.ClassRefused, "max_message_bytes of the sink, which is 1048576", "topic "+c.Topic)
		if err := s.Deliver(t.Context(), sample("N")); err != nil {
			t.Fatal(err)
		}
		if got := headersOf(records(t, c, 1)[0])["ce_id"]; got != "N" {
			t.Errorf("got %s, want N", got)
		}
	})
}

// TestTooLargeTogether: a limit that each record keeps refuses none of them, however many are
// sent at the same time.
func TestTooLargeTogether(t *testing.T) {
	onBoth(t, func(t *testing.T, c Config) {
		const deliveries, workers = 200, 20
		makeTopic(t, c, 1, map[string]string{"max.message.bytes": "4096"})
		s := newTestSink(t, c)
		var wg sync.WaitGroup
		for w := range workers {
			wg.Go(func() {
				for i := w; i < deliveries; i += workers {
					n := sample(fmt.Sprint("N", i))
					n.Diffs[0].Text = strings.Repeat("x", 1000)
					if err := s.Deliver(t.Context(), n); err != nil {
						t.Errorf("%s: %v", n.ID, err)
					}
				}
			})
		}
		wg.Wait()
		last := make(map[int]int) // by worker, of which each sends in order
		for _, m := range records(t, c, deliveries) {
			i, err := strconv.Atoi(headersOf(m)["ce_id"][1:])
			if before, ok := last[i%workers]; err != nil || ok && before >= i {
				t.Errorf("N%d came behind N%d: %v", i, before, err)
			}
			last[i%workers] = i
		}
	})
}

func TestNotANotification(t *testing.T) {
	s := newTestSink(t, Config{Brokers: []string{"127.0.0.1:1"}, Topic: "t"})
	wantErr(t, s.Deliver(t.Context(), pipeline.Notification{}), failure.ClassPermanent, "no ID")
}

func TestNoBroker(t *testing.T) {
	s := newTestSink(t, Config{Brokers: []string{"127.0.0.1:1"}, Topic: "t"})
	err := s.Deliver(t.Context(), sample("N"))
	wantErr(t, err, failure.ClassRetry, "no broker answers at 127.0.0.1:1: connection refused")
	if failure.IsAmbiguous(err) {
		t.Error("it is marked as ambiguous")
	}
}

// TestLogin: the error reports a refused login, without the password.
func TestLogin(t *testing.T) {
	cluster := startFake(t, kfake.EnableSASL(), kfake.Superuser("PLAIN", "vokter", "right-secret"))
	c := Config{Brokers: cluster.ListenAddrs(), Topic: "t", SASL: kafkacluster.SASL{Mechanism: "PLAIN", User: "vokter", Password: registry.NewSecret("right-secret")}}
	makeTopic(t, c, 1, nil)
	if err := newTestSink(t, c).Deliver(t.Context(), sample("N")); err != nil {
		t.Fatal(err)
	}
	// The fake hangs up on a wrong password; a real broker says what is wrong.
	cluster.ControlKey(int16(kmsg.SASLAuthenticate), func(req kmsg.Request) (kmsg.Response, error, bool) {
		cluster.KeepControl()
		resp := req.ResponseKind().(*kmsg.SASLAuthenticateResponse)
		resp.ErrorCode = kerr.SaslAuthenticationFailed.Code
		return resp, nil, true
	})
	c.SASL.Password = registry.NewSecret("wrong-secret")
	err := newTestSink(t, c).Deliver(t.Context(), sample("N"))
	wantErr(t, err, failure.ClassRetry, `refuse the login of "vokter" with PLAIN`, "sasl.password")
	for e := err; e != nil; e = errors.Unwrap(e) {
		if strings.Contains(e.Error(), "wrong-secret") {
			t.Errorf("the password is in %v", e)
		}
	}
}

// onProduce makes the brokers answer each attempt to write with what f returns; nil: as they do.
func onProduce(c *kfake.Cluster, f func() *kerr.Error) {
	c.ControlKey(produceKey, func(req kmsg.Request) (kmsg.Response, error, bool) {
		c.KeepControl()
		failed := f()
		if failed == nil {
			return nil, nil, false
		}
		in, out := req.(*kmsg.ProduceRequest), req.ResponseKind().(*kmsg.ProduceResponse)
		for _, topic := range in.Topics {
			answer := kmsg.NewProduceResponseTopic()
			answer.Topic, answer.TopicID = topic.Topic, topic.TopicID
			for _, p := range topic.Partitions {
				pr := kmsg.NewProduceResponseTopicPartition()
				pr.Partition, pr.ErrorCode = p.Partition, failed.Code
				answer.Partitions = append(answer.Partitions, pr)
			}
			out.Topics = append(out.Topics, answer)
		}
		return out, nil, true
	})
}

// TestRights: the error says in words what the brokers refuse. Once they permit it, a new
// producer delivers without a restart.
func TestRights(t *testing.T) {
	for failed, want := range map[*kerr.Error]string{
		kerr.TopicAuthorizationFailed:   "allow Write and Describe on it",
		kerr.ClusterAuthorizationFailed: "allow IdempotentWrite on the cluster",
	} {
		cluster := startFake(t)
		c := Config{Brokers: cluster.ListenAddrs(), Topic: "t"}
		makeTopic(t, c, 1, nil)
		var begun atomic.Int32
		cluster.ControlKey(int16(kmsg.InitProducerID), func(kmsg.Request) (kmsg.Response, error, bool) {
			cluster.KeepControl()
			begun.Add(1)
			return nil, nil, false
		})
		var mended atomic.Bool
		onProduce(cluster, func() *kerr.Error {
			if mended.Load() {
				return nil
			}
			return failed
		})
		s := newTestSink(t, c)
		err := s.Deliver(t.Context(), sample("N"))
		wantErr(t, err, failure.ClassRetry, want)
		if failure.IsAmbiguous(err) {
			t.Errorf("%v is marked as ambiguous", err)
		}
		mended.Store(true)
		if err := s.Deliver(t.Context(), sample("N")); err != nil {
			t.Errorf("after %v: %v", failed, err)
		}
		if err := s.Deliver(t.Context(), sample("N2")); err != nil || begun.Load() != 2 {
			t.Errorf("after %v: %v, %d producers, want one before the failure and one after it", failed, err, begun.Load())
		}
	}
}

func TestBrokenConnections(t *testing.T) {
	cluster := startFake(t)
	c := Config{Brokers: cluster.ListenAddrs(), Topic: "t"}
	makeTopic(t, c, 1, nil)
	breakConnections(cluster)
	s := newTestSink(t, c)
	s.producerConfig.Producer.Retry.Max = 1
	wantErr(t, s.Deliver(t.Context(), sample("N")), failure.ClassRetry, "kafka: topic t: the connection to the brokers broke")
}

// TestEndOfTheContext: a wait ends with it, also while brokers say nothing.
func TestEndOfTheContext(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	silent := Config{Brokers: []string{l.Addr().String()}, Topic: "t"}
	for _, tt := range []struct {
		name      string
		begin     func(t *testing.T) (c Config, asked <-chan struct{})
		ambiguous bool
	}{
		{"before", func(*testing.T) (Config, <-chan struct{}) { return silent, nil }, false},
		{"while connecting", func(t *testing.T) (Config, <-chan struct{}) {
			asked := make(chan struct{})
			go func() {
				conn, err := l.Accept()
				if err != nil {
					t.Error(err)
					return
				}
				t.Cleanup(func() { conn.Close() })
				close(asked)
			}()
			return silent, asked
		}, false},
		{"while writing", func(t *testing.T) (Config, <-chan struct{}) {
			cluster := startFake(t)
			c := Config{Brokers: cluster.ListenAddrs(), Topic: "t"}
			makeTopic(t, c, 1, nil)
			asked, release := holdProduce(cluster)
			t.Cleanup(release)
			return c, asked
		}, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var s *Sink
			t.Cleanup(func() { _ = s.Close() }) // after what holds up the brokers has ended
			c, asked := tt.begin(t)
			if s, err = New(c); err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			if asked == nil {
				cancel()
			} else {
				go func() { <-asked; cancel() }()
			}
			err = s.Deliver(ctx, sample("N"))
			wantErr(t, err, failure.ClassCanceled)
			if !errors.Is(err, context.Canceled) || failure.IsAmbiguous(err) != tt.ambiguous {
				t.Errorf("got %v, ambiguous %v, want context.Canceled and %v", err, failure.IsAmbiguous(err), tt.ambiguous)
			}
		})
	}
}

// TestDeadline: a write that the brokers do not answer in time is repeated on new connections.
func TestDeadline(t *testing.T) {
	cluster := startFake(t)
	c := Config{Brokers: cluster.ListenAddrs(), Topic: "t"}
	makeTopic(t, c, 1, nil)
	s := newTestSink(t, c)
	if err := s.Deliver(t.Context(), sample("CONNECTED")); err != nil { // which may take long
		t.Fatal(err)
	}
	_, release := holdProduce(cluster)
	defer release()
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	err := s.Deliver(ctx, sample("N"))
	wantErr(t, err, failure.ClassRetry)
	if !errors.Is(err, context.DeadlineExceeded) || !failure.IsAmbiguous(err) {
		t.Errorf("got %v, want context.DeadlineExceeded, ambiguous", err)
	}
	release()
	if err := s.Deliver(t.Context(), sample("N")); err != nil {
		t.Error(err)
	}
}

// TestManyFaults: of many deliveries through brokers that fail now and then each arrives, those of a page in order.
// What arrives again has the same ID.
func TestManyFaults(t *testing.T) {
	const pages, each = 20, 50
	cluster := startFake(t)
	c := Config{Brokers: cluster.ListenAddrs(), Topic: "t"}
	makeTopic(t, c, 4, nil)
	var calls atomic.Int64
	cluster.ControlKey(produceKey, func(kmsg.Request) (kmsg.Response, error, bool) {
		cluster.KeepControl()
		if calls.Add(1)%20 == 10 {
			return nil, errors.New("the connection breaks"), true
		}
		return nil, nil, false
	})
	s := newTestSink(t, c)
	deliverInTurn(t, s, pages, each)
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if calls.Load() >= pages*each {
		t.Errorf("%d requests for %d deliveries: nothing was batched", calls.Load(), pages*each)
	}
	checkInTurn(t, c, pages, each)
}

// deliverInTurn delivers so many notifications of so many pages: those of a page one after the other, each until it is
// delivered.
func deliverInTurn(t *testing.T, s *Sink, pages, each int) {
	var wg sync.WaitGroup
	for page := range pages {
		wg.Go(func() {
			for i := range each {
				n := sample(strconv.Itoa(i))
				n.URL = fmt.Sprintf("https://example.com/%d", page)
				for try := 0; s.Deliver(t.Context(), n) != nil; try++ {
					if try == 100 {
						t.Errorf("notification %s of %s was never delivered", n.ID, n.URL)
						return
					}
				}
			}
		})
	}
	wg.Wait()
}

// checkInTurn checks that the topic of c has what deliverInTurn delivered, in order. Repeats may follow.
func checkInTurn(t *testing.T, c Config, pages, each int) {
	client, err := sarama.NewClient(c.Brokers, sarama.NewConfig())
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	partitions, err := client.Partitions(c.Topic)
	if err != nil {
		t.Fatal(err)
	}
	var written int64
	for _, p := range partitions {
		end, err := client.GetOffset(c.Topic, p, sarama.OffsetNewest)
		if err != nil {
			t.Fatal(err)
		}
		written += end
	}
	arrived := make(map[string]int) // by page
	for _, m := range records(t, c, int(written)) {
		id, err := strconv.Atoi(headersOf(m)["ce_id"])
		if page := string(m.Key); err != nil || id > arrived[page] {
			t.Errorf("%s: notification %s came, want %d or one before it", page, headersOf(m)["ce_id"], arrived[page])
		} else if id == arrived[page] {
			arrived[page]++
		}
	}
	for page, n := range arrived {
		if n != each {
			t.Errorf("%s: %d of %d arrived", page, n, each)
		}
	}
	if len(arrived) != pages {
		t.Errorf("%d of %d pages arrived", len(arrived), pages)
	}
}

func TestClose(t *testing.T) {
	cluster := startFake(t)
	c := Config{Brokers: cluster.ListenAddrs(), Topic: "t"}
	makeTopic(t, c, 1, nil)
	unused := newTestSink(t, c)
	if err := errors.Join(unused.Close(), unused.Close()); err != nil {
		t.Errorf("a sink that never connected: %v", err)
	}
	s := newTestSink(t, c)
	if err := s.Deliver(t.Context(), sample("N")); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(s.Close(), s.Close()); err != nil {
		t.Error(err)
	}
	for _, closed := range []*Sink{unused, s} {
		if err := closed.Deliver(t.Context(), sample("N")); !errors.Is(err, errClosed) {
			t.Errorf("got %v, want what says that it is closed", err)
		}
	}
}
