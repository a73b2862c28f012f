package registry

import (
	"crypto/x509"
	"net/http"
	"net/netip"
)

// Connection says how a sink reaches its receiver. The Config of each sink that speaks HTTP or
// SMTP embeds one, so that its options stand among those of the sink.
type Connection struct {
	// CA is a file in PEM with the certificate authorities to trust in place of the system's,
	// for a receiver whose certificate is of an authority of your own. It is read again when
	// the configuration is. Default: the system's.
	CA string `yaml:"ca"`
	// Cert is a file in PEM with the certificate that this program shows to a receiver that
	// asks for one (mTLS), and behind it those between it and its authority. It is read for
	// each new connection, so that it can be renewed in place. It goes with Key. Default: none.
	Cert string `yaml:"cert"`
	// Key is a file in PEM with the private key of Cert.
	Key string `yaml:"key"`
	// Proxy is the URL of a proxy to connect through, such as http://proxy.example.com:3128:
	// http, https, socks5 or socks5h, with a user and password where the proxy asks for them.
	// E-mail can use the latter two. The environment (HTTPS_PROXY) is not heeded. Default: none.
	Proxy Secret `yaml:"proxy"`

	// Allow are the networks that may be reached besides public addresses. In a configuration
	// file that is allow.sinks.
	Allow []netip.Prefix `yaml:"-"`
	// RootCAs are the authorities to trust where they are not in a file; nil means those of CA.
	RootCAs *x509.CertPool `yaml:"-"`
	// Client makes the requests in place of a client with the settings above, of which none
	// counts then: what it reaches is up to whoever made it. Redirects are not followed in any
	// case. Sinks with one Client share its connections.
	Client *http.Client `yaml:"-"`
}

// Template is the source of a template for what a sink says, as text/template has it: see
// docs/sinks for its functions and names. Empty: the sink's own layout.
type Template string
