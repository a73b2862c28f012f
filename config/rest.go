package config

import (
	"cmp"
	"net/netip"

	"github.com/vokter/vokter/pipeline/registry"
)

// Rest has the settings of the REST API of the first server.
type Rest struct {
	// Listen is the address to serve it at, HOST:PORT. Without a Token its host is a loopback
	// address.
	Listen string
	// Token must be sent with each command. It is empty where the file says token: none.
	Token registry.Secret
	// Format is the format of the notifications: documented or v1.
	Format string
	// Secret signs the notifications, if it is not empty.
	Secret registry.Secret
	// Verify demands that a client URL confirms that it wants notifications. It is true unless
	// the host of Listen is a loopback address.
	Verify bool
	// Allow are the networks of client URLs besides public addresses.
	Allow []netip.Prefix
}

// noToken as the token of the REST API says that none is demanded.
const noToken = "none"

// restSection is the shape of the section "rest".
type restSection struct {
	Listen listenAddr      `yaml:"listen"`
	Token  registry.Secret `yaml:"token"`
	Format string          `yaml:"format"`
	Secret registry.Secret `yaml:"secret"`
	Verify bool            `yaml:"verify"`
}

// convertRest returns the settings in f, or nil if it has no section "rest".
func (d *decoder) convertRest(f *yamlFile) *Rest {
	if _, given := d.positions.get("rest"); !given || d.brokenPaths["rest"] {
		return nil
	}
	r := f.Rest
	r.Format = cmp.Or(r.Format, "documented")
	if r.Format != "documented" && r.Format != "v1" {
		d.failPath("rest.format", "rest.format: %q is no format; write documented or v1", r.Format)
	}
	local, valid := isLoopback(string(r.Listen)), checkListen(string(r.Listen)) == nil
	switch _, given := d.positions.get("rest.listen"); {
	case !given:
		d.failPath("rest", "rest has no listen; add one such as listen: 127.0.0.1:9001")
	case !valid: // reported when it was read
	case r.Token.IsZero() && !d.brokenPaths["rest.token"]:
		d.failPath("rest", "rest has no token, so that every user of the machine could subscribe; add token or token_file, or token: none where nobody else uses it")
	case !local && r.Token.Reveal() == noToken:
		d.failPath("rest.listen", "rest.listen: %s is reached from other machines, so rest needs a token; add token or token_file, or listen at 127.0.0.1", r.Listen)
	case r.Listen == f.Listen && !hasPortZero(string(r.Listen)):
		d.failPath("rest.listen", "rest.listen: %s is the address of listen already; choose another port", r.Listen)
	}
	if r.Token.Reveal() == noToken {
		r.Token = registry.Secret{}
	}
	return &Rest{
		Listen: string(r.Listen), Token: r.Token, Format: r.Format, Secret: r.Secret, Verify: r.Verify || !local, Allow: f.Allow.Sinks,
	}
}
