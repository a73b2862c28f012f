//go:build unix

package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"time"
)

// brokerAddresses matches addresses of brokers: HOST:PORT, several of them with commas between.
var brokerAddresses = regexp.MustCompile(`^[^/\s,]+:\d+(,[^/\s,]+:\d+)*$`)

// broker is the Kafka that the processes share: one that is there, or one that is run by a
// command, as CMD start DIR PORT, CMD kill DIR and CMD stop DIR.
type broker struct {
	command, dir, port string // empty command: it is somebody else's
	addrs              string
	// outages are when it was away.
	outages []outage
}

// outage is a time without a broker; till is zero while it lasts.
type outage struct{ from, till time.Time }

// brokerTimeout is how long the command may take for a start or an end.
const brokerTimeout = 3 * time.Minute

// newBroker returns the one that named says, which it starts in dir where it is a command.
func newBroker(ctx context.Context, named, dir string) (*broker, error) {
	if brokerAddresses.MatchString(named) {
		return &broker{addrs: named}, nil
	}
	command, err := filepath.Abs(named)
	if err != nil {
		return nil, err
	}
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	b := &broker{command: command, dir: dir, port: port, addrs: net.JoinHostPort("127.0.0.1", port)}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	if err := b.start(ctx); err != nil {
		return nil, errors.Join(err, b.stop())
	}
	return b, nil
}

// freePort returns a port that nobody listens at, nor at the one behind it, where brokers
// have their controllers.
func freePort() (string, error) {
	for range 100 {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return "", err
		}
		port := l.Addr().(*net.TCPAddr).Port
		next, err := net.Listen("tcp", fmt.Sprint("127.0.0.1:", port+1))
		l.Close()
		if err == nil {
			next.Close()
			return fmt.Sprint(port), nil
		}
	}
	return "", errors.New("no two ports are free")
}

func (b *broker) runCommand(ctx context.Context, args ...string) error {
	ctx, cancel := context.WithTimeout(ctx, brokerTimeout)
	defer cancel()
	out, err := exec.CommandContext(ctx, b.command, args...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s %s: %w\n%s", b.command, args[0], err, out)
	}
	return nil
}

// start starts the broker and returns once it answers.
func (b *broker) start(ctx context.Context) error {
	err := b.runCommand(ctx, "start", b.dir, b.port)
	if n := len(b.outages); n > 0 && err == nil {
		b.outages[n-1].till = time.Now()
	}
	return err
}

// kill ends the broker at once.
func (b *broker) kill(ctx context.Context) error {
	b.outages = append(b.outages, outage{from: time.Now()})
	return b.runCommand(ctx, "kill", b.dir)
}

// stop ends a broker that is ours.
func (b *broker) stop() error {
	if b.command == "" {
		return nil
	}
	return b.runCommand(context.Background(), "stop", b.dir)
}

// uptime returns how long the broker ran between two times.
func (b *broker) uptime(from, to time.Time) time.Duration {
	sum := to.Sub(from)
	for _, o := range b.outages {
		begin, end := o.from, o.till
		if begin.Before(from) {
			begin = from
		}
		if end.IsZero() || end.After(to) {
			end = to
		}
		sum -= max(end.Sub(begin), 0)
	}
	return sum
}
