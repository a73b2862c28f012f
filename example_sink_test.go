package vokter_test

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"time"

	"github.com/vokter/vokter"
	"github.com/vokter/vokter/config"
	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/failure"
	"github.com/vokter/vokter/pipeline/registry"
)

// board is a sink of one's own: a display on a wall, which takes a line of JSON on a TCP
// connection and answers with one word.
type board struct{ addr string }

func (b board) Deliver(ctx context.Context, n pipeline.Notification) error {
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", b.addr)
	if err != nil {
		return err // any error: it is tried again, later and later
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.Close() })() // no wait outlives ctx
	answer := ""
	if err = json.NewEncoder(conn).Encode(n); err == nil {
		answer, err = bufio.NewReader(io.LimitReader(conn, 100)).ReadString('\n')
	}
	switch {
	case err != nil:
		return failure.Ambiguous(cmp.Or(ctx.Err(), err)) // it may have come through
	case answer == "busy\n":
		return failure.RetryAfter(errors.New("the board is busy"), time.Minute)
	case answer == "bad\n":
		return failure.Refused(errors.New("the board cannot show this"))
	case answer != "ok\n":
		return fmt.Errorf("the board answered %.20q", answer)
	}
	return nil // only now the board has it
}

// registerBoard makes a configuration know {board: {addr: HOST:PORT}}.
func registerBoard(r *registry.Registry) {
	r.Sinks.Add("board", func(decode registry.Decode, _ registry.Env) (pipeline.Sink, error) {
		var c struct {
			Addr string `yaml:"addr"`
		}
		if err := decode(&c); err != nil {
			return nil, err
		}
		if _, _, err := net.SplitHostPort(c.Addr); err != nil {
			return nil, &pipeline.FieldError{Field: "addr", Reason: "it is not an address; write HOST:PORT"}
		}
		return board{c.Addr}, nil
	})
}

// A sink of one's own has a name in YAML like any other.
func Example_ownSink() {
	var kinds registry.Registry
	registerBoard(&kinds)
	c, err := config.Parse("vokter.yaml", []byte(`
sinks: {hall: {board: {addr: "board.example.com:7000"}}}
subscriptions: [{url: https://example.com/, keywords: [sold out], sinks: [hall]}]
`), config.Options{Registry: &kinds}) // or config.Load(path, ...)
	if err != nil {
		log.Fatal(err)
	}
	r, err := vokter.New(c.Router) // then r.Run(ctx)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(r != nil, c.Router.Sinks["hall"])

	_, err = config.Parse("vokter.yaml", []byte("sinks: {hall: {board: {addr: hall}}}"), config.Options{Registry: &kinds})
	fmt.Println(err)
	// Output:
	// true {board.example.com:7000}
	// vokter.yaml:1:30: sinks.hall.board.addr: it is not an address; write HOST:PORT
}
