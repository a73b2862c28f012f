package outbound

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"strconv"
	"strings"
)

// AddressError says that a connection was refused because its address is not public.
type AddressError struct {
	// Addr is the address that was about to be connected to.
	Addr netip.Addr
}

// Error names the address.
func (e *AddressError) Error() string { return e.Addr.String() + " is not a public address" }

// Permit adds to Error which field of the configuration permits the address: its list is "fetch" or "sinks".
func (e *AddressError) Permit(list string) string {
	network := e.Network().String()
	if e.Addr.Is6() {
		network = strconv.Quote(network) // for YAML
	}
	return fmt.Sprintf("%v; permit it with allow: {%s: [%s]}", e, list, network)
}

// Network is the network of only this address.
func (e *AddressError) Network() netip.Prefix {
	return netip.PrefixFrom(e.Addr.WithZone(""), e.Addr.BitLen())
}

// specialNetworks are the global unicast networks that are not the public internet (the IANA
// special-purpose registries). IPv6 addresses outside 2000::/3 are refused without being
// listed.
var specialNetworks = parsePrefixes(
	"0.0.0.0/8",       // this network
	"10.0.0.0/8",      // private
	"100.64.0.0/10",   // shared by carriers (CGNAT)
	"127.0.0.0/8",     // loopback
	"169.254.0.0/16",  // link-local, metadata services of clouds among it
	"172.16.0.0/12",   // private
	"192.0.0.0/24",    // protocol assignments
	"192.0.2.0/24",    // documentation
	"192.88.99.0/24",  // 6to4 relays, withdrawn
	"192.168.0.0/16",  // private
	"198.18.0.0/15",   // benchmarks
	"198.51.100.0/24", // documentation
	"203.0.113.0/24",  // documentation
	"224.0.0.0/4",     // multicast
	"240.0.0.0/4",     // reserved, and the broadcast address
	"2001::/23",       // protocol assignments
	"2001:db8::/32",   // documentation
	"3fff::/20",       // documentation
)

var (
	globalUnicast = netip.MustParsePrefix("2000::/3")
	sixToFour     = netip.MustParsePrefix("2002::/16")
	teredo        = netip.MustParsePrefix("2001::/32")
	nat64         = netip.MustParsePrefix("64:ff9b::/96")
	// nat64Local is RFC 8215's prefix for a site's own translators. Only the site knows the
	// position of the inner address, so only the simplest form is unwrapped.
	nat64Local = netip.MustParsePrefix("64:ff9b:1::/96")
)

// Check returns an *AddressError unless addr is public or in one of the networks of
// allow. An IPv4 address within an IPv6 one counts as itself.
func Check(addr netip.Addr, allow []netip.Prefix) error {
	addr = addr.Unmap()
	if isPermitted(addr.WithZone(""), allow) {
		return nil
	}
	return &AddressError{Addr: addr}
}

func isPermitted(addr netip.Addr, allow []netip.Prefix) bool {
	for _, p := range allow {
		if p.Contains(addr) {
			return true
		}
	}
	inner := embeddedIPv4(addr)
	if len(inner) == 0 {
		return isPublic(addr)
	}
	for _, in := range inner {
		if !isPermitted(in, allow) {
			return false
		}
	}
	return true
}

// embeddedIPv4 returns the IPv4 addresses to which a packet for addr is forwarded, if addr belongs to
// a transition mechanism.
func embeddedIPv4(addr netip.Addr) []netip.Addr {
	if !addr.Is6() {
		return nil
	}
	b := addr.As16()
	v4 := func(i int, mask uint32) netip.Addr {
		var a [4]byte
		binary.BigEndian.PutUint32(a[:], binary.BigEndian.Uint32(b[i:])^mask)
		return netip.AddrFrom4(a)
	}
	switch {
	case sixToFour.Contains(addr):
		return []netip.Addr{v4(2, 0)}
	case teredo.Contains(addr): // its server, and the client with all bits inverted
		return []netip.Addr{v4(4, 0), v4(12, ^uint32(0))}
	case nat64.Contains(addr), nat64Local.Contains(addr):
		return []netip.Addr{v4(12, 0)}
	}
	return nil
}

func isPublic(addr netip.Addr) bool {
	if addr.Is6() && !globalUnicast.Contains(addr) {
		return false
	}
	for _, p := range specialNetworks {
		if p.Contains(addr) {
			return false
		}
	}
	return addr.IsValid()
}

// ParseAllow parses networks such as "10.1.0.0/16", or single addresses.
func ParseAllow(networks []string) ([]netip.Prefix, error) {
	var allow []netip.Prefix
	for _, s := range networks {
		s = strings.TrimSpace(s)
		p, err := netip.ParsePrefix(s)
		if err != nil {
			a, err := netip.ParseAddr(s)
			if err != nil || a.Zone() != "" {
				return nil, fmt.Errorf("%q is not a network; write an address and a prefix length such as 10.1.0.0/16", s)
			}
			p = netip.PrefixFrom(a, a.BitLen())
		}
		if a := p.Addr(); a.Is4In6() { // connected addresses are compared unmapped
			if p.Bits() < 96 {
				return nil, fmt.Errorf("%q is wider than the IPv4 addresses in IPv6; write it in IPv4", s)
			}
			p = netip.PrefixFrom(a.Unmap(), p.Bits()-96)
		}
		allow = append(allow, p.Masked())
	}
	return allow, nil
}

func parsePrefixes(list ...string) []netip.Prefix {
	ps := make([]netip.Prefix, len(list))
	for i, s := range list {
		ps[i] = netip.MustParsePrefix(s)
	}
	return ps
}
