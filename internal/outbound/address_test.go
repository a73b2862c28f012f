package outbound

import (
	"errors"
	"net/netip"
	"testing"
)

func TestCheck(t *testing.T) {
	for _, tc := range []struct {
		addr   string
		public bool
	}{
		{"8.8.8.8", true},
		{"1.1.1.1", true},
		{"192.0.1.1", true},
		{"100.63.255.255", true},
		{"100.128.0.0", true},
		{"172.15.255.255", true},
		{"172.32.0.0", true},
		{"198.20.0.1", true},
		{"223.255.255.255", true},
		{"2606:4700:4700::1111", true},
		{"2001:4860:4860::8888", true},

		{"0.0.0.0", false},
		{"0.1.2.3", false},
		{"10.0.0.1", false},
		{"100.64.0.1", false},
		{"100.127.255.255", false},
		{"127.0.0.1", false},
		{"127.255.255.254", false},
		{"169.254.169.254", false},
		{"172.16.0.1", false},
		{"172.31.255.255", false},
		{"192.0.0.170", false},
		{"192.0.2.1", false},
		{"192.88.99.1", false},
		{"192.168.1.1", false},
		{"198.18.0.1", false},
		{"198.19.255.255", false},
		{"198.51.100.1", false},
		{"203.0.113.1", false},
		{"224.0.0.1", false},
		{"239.255.255.255", false},
		{"240.0.0.1", false},
		{"255.255.255.255", false},

		{"::", false},
		{"::1", false},
		{"::1%lo", false},
		{"fe80::1", false},
		{"fe80::1%eth0", false},
		{"fec0::1", false},
		{"fc00::1", false},
		{"fd12:3456:789a::1", false},
		{"fd00:ec2::254", false},
		{"ff02::1", false},
		{"100::1", false},
		{"2001:db8::1", false},
		{"3fff::1", false},
		{"5f00::1", false},
		{"2001:2::1", false},
		{"2001:20::1", false},

		// An inner address decides.
		{"::ffff:8.8.8.8", true},
		{"::ffff:127.0.0.1", false},
		{"::ffff:a00:1", false},
		{"::ffff:0:7f00:1", false}, // IPv4-translated
		{"::127.0.0.1", false},     // IPv4-compatible
		{"::8.8.8.8", false},
		{"2002:808:808::1", true},
		{"2002:7f00:1::1", false},
		{"2002:a9fe:a9fe::", false},
		{"64:ff9b::8.8.8.8", true},
		{"64:ff9b::7f00:1", false},
		{"64:ff9b::10.0.0.1", false},
		{"64:ff9b:1::8.8.8.8", true},
		{"64:ff9b:1::7f00:1", false},
		{"64:ff9b:1:7f00:0:100::", false}, // another place for the inner address
		{"64:ff9b:1:a00::8.8.8.8", false},
		{"64:ff9b:2::8.8.8.8", false},
		{"2001:0:808:808:0:0:f7f7:f7f7", true},  // Teredo: server 8.8.8.8, client 8.8.8.8
		{"2001:0:808:808:0:0:80ff:fffe", false}, // client 127.0.0.1
		{"2001:0:7f00:1:0:0:f7f7:f7f7", false},  // server 127.0.0.1
	} {
		err := Check(netip.MustParseAddr(tc.addr), nil)
		if got := err == nil; got != tc.public {
			t.Errorf("%s: public = %v, want %v", tc.addr, got, tc.public)
		}
	}
	if Check(netip.Addr{}, nil) == nil {
		t.Error("the zero address is public")
	}
}

func TestCheckAllow(t *testing.T) {
	for _, tc := range []struct {
		allow, addr string
		want        bool
	}{
		{"127.0.0.1/32", "127.0.0.1", true},
		{"127.0.0.1", "127.0.0.1", true},
		{"127.0.0.1/32", "::ffff:127.0.0.1", true},
		{"::ffff:127.0.0.0/104", "127.0.0.1", true},
		{"127.0.0.1/32", "64:ff9b::7f00:1", true},
		{"127.0.0.1/32", "127.0.0.2", false},
		{"127.0.0.1/32", "::1", false},
		{"10.1.2.3/16", "10.1.9.9", true},
		{"10.1.2.3/16", "10.2.0.0", false},
		{"fe80::/10", "fe80::1%eth0", true},
		{"64:ff9b:1::/48", "64:ff9b:1:a00::8.8.8.8", true},
		{"0.0.0.0/0", "10.0.0.1", true},
		{"0.0.0.0/0", "fd00::1", false},
	} {
		allow, err := ParseAllow([]string{tc.allow})
		if err != nil {
			t.Fatal(err)
		}
		if got := Check(netip.MustParseAddr(tc.addr), allow) == nil; got != tc.want {
			t.Errorf("%s with %s allowed: %v, want %v", tc.addr, tc.allow, got, tc.want)
		}
	}
}

func TestAddressErrorNamesField(t *testing.T) {
	for addr, want := range map[string]string{
		"127.0.0.1":        "127.0.0.1 is not a public address; permit it with allow: {fetch: [127.0.0.1/32]}",
		"::ffff:127.0.0.1": "127.0.0.1 is not a public address; permit it with allow: {fetch: [127.0.0.1/32]}",
		"fe80::1%eth0":     `fe80::1%eth0 is not a public address; permit it with allow: {fetch: ["fe80::1/128"]}`,
	} {
		e, ok := errors.AsType[*AddressError](Check(netip.MustParseAddr(addr), nil))
		if !ok || e.Permit("fetch") != want {
			t.Errorf("got  %v\nwant %s", e, want)
		}
	}
}

func TestParseAllowRefuses(t *testing.T) {
	for _, s := range []string{"", "example.com", "10.0.0.0/33", "10.0.0/8", "fe80::1%eth0", "::ffff:0:0/90"} {
		if p, err := ParseAllow([]string{s}); err == nil {
			t.Errorf("%q: got %v, want an error", s, p)
		}
	}
}
