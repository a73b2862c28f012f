package outbound

import (
	"context"
	"net"
	"sync/atomic"
	"testing"

	"golang.org/x/net/dns/dnsmessage"
)

// TestCachingResolver: an answer is kept, and one that a name does not exist is not.
func TestCachingResolver(t *testing.T) {
	var asked atomic.Int64
	server := nameServer(t, func(q dnsmessage.Question) (ttl uint32, exists bool) {
		asked.Add(1)
		return 300, q.Name.String() == "known.example."
	})
	r := CachingResolver(&net.Resolver{PreferGo: true, Dial: func(ctx context.Context, network, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, network, server)
	}})
	for range 3 {
		ips, err := r.LookupIP(t.Context(), "ip4", "known.example.")
		if err != nil || len(ips) != 1 || !ips[0].Equal(net.IPv4(192, 0, 2, 1)) {
			t.Fatalf("got %v, %v", ips, err)
		}
	}
	if n := asked.Swap(0); n != 1 {
		t.Errorf("the name server was asked %d times for three lookups, want once", n)
	}
	for range 2 {
		if ips, err := r.LookupIP(t.Context(), "ip4", "unknown.example."); err == nil {
			t.Errorf("got %v of a name that does not exist", ips)
		}
	}
	if n := asked.Load(); n != 2 {
		t.Errorf("the name server was asked %d times about a name that does not exist, want twice", n)
	}
}

// nameServer starts a name server on loopback that answers questions for addresses with 192.0.2.1 or that
// the name does not exist, and returns its address.
func nameServer(t *testing.T, answer func(dnsmessage.Question) (ttl uint32, exists bool)) string {
	t.Helper()
	conn, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	go func() {
		b := make([]byte, 1500)
		for {
			n, from, err := conn.ReadFrom(b)
			if err != nil {
				return // closed
			}
			var m dnsmessage.Message
			if m.Unpack(b[:n]) != nil || len(m.Questions) != 1 {
				continue
			}
			m.Response, m.Additionals = true, nil
			if ttl, exists := answer(m.Questions[0]); exists {
				m.Answers = []dnsmessage.Resource{{
					Header: dnsmessage.ResourceHeader{Name: m.Questions[0].Name, Type: dnsmessage.TypeA, Class: dnsmessage.ClassINET, TTL: ttl},
					Body:   &dnsmessage.AResource{A: [4]byte{192, 0, 2, 1}},
				}}
			} else {
				m.RCode = dnsmessage.RCodeNameError
			}
			if out, err := m.Pack(); err == nil {
				_, _ = conn.WriteTo(out, from)
			}
		}
	}()
	return conn.LocalAddr().String()
}
