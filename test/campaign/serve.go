//go:build unix

package main

import (
	"net"
	"net/http"
)

// startServer serves h on a loopback port of its own until the server is closed.
func startServer(h http.Handler) (*http.Server, string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, "", err
	}
	s := &http.Server{Handler: h}
	go s.Serve(l) //nolint:errcheck // It ends with Close.
	return s, l.Addr().String(), nil
}
