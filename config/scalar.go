package config

import (
	"errors"
	"fmt"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"github.com/vokter/vokter/internal/outbound"
)

// ParseDuration reads a duration such as 90s, 10m or 1h30m that is not negative. Its
// errors say what to write instead.
func ParseDuration(s string) (time.Duration, error) {
	d, err := time.ParseDuration(s)
	switch {
	case err == nil && d < 0:
		return 0, fmt.Errorf("%q is negative; write a duration such as 10s, 5m or 1h", s)
	case err == nil:
		return d, nil
	}
	if _, err := strconv.ParseFloat(s, 64); err == nil {
		return 0, fmt.Errorf("%q has no unit; write %ss, %sm or %sh", s, s, s, s)
	}
	if n, ok := strings.CutSuffix(s, "d"); ok {
		if days, err := strconv.Atoi(n); err == nil && days >= 0 && days < 100_000 {
			return 0, fmt.Errorf("%q: days are not a unit here; write %dh", s, days*24)
		}
	}
	return 0, fmt.Errorf("%q is not a duration; write a number and a unit such as 10s, 5m or 1h", s)
}

// ParsePrefix reads a network such as 10.0.0.0/8, or one address. Its errors say what
// to write instead.
func ParsePrefix(s string) (netip.Prefix, error) {
	// A slip in the length would open far more than was meant.
	if p, err := netip.ParsePrefix(s); err == nil && p != p.Masked() {
		return netip.Prefix{}, fmt.Errorf("%q has bits set behind its prefix; write %s or %s/%d", s, p.Masked(), p.Addr(), p.Addr().BitLen())
	}
	ps, err := outbound.ParseAllow([]string{s})
	if err != nil {
		return netip.Prefix{}, err
	}
	return ps[0], nil
}

// rate is a number of events per second.
type rate float64

var perUnit = map[string]float64{"s": 1, "m": 60, "h": 3600}

func parseRate(s string) (rate, error) {
	number, unit, ok := strings.Cut(s, "/")
	n, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
	seconds, known := perUnit[strings.TrimSpace(unit)]
	if !ok || !known || err != nil || !(n > 0) || n > 1e9 {
		return 0, fmt.Errorf("%q is not a rate; write a number above 0 per second, minute or hour, such as 1/s, 30/m or 100/h", s)
	}
	return rate(n / seconds), nil
}

// size is a number of bytes.
type size int64

var bytesPer = map[string]float64{
	"B": 1, "KB": 1e3, "MB": 1e6, "GB": 1e9, "TB": 1e12,
	"KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40,
}

// ParseSize reads a size such as 256MB or 1.5GiB, in bytes. Its errors say what to write
// instead.
func ParseSize(s string) (int64, error) {
	number := strings.TrimRight(s, "BKMGTi ")
	unit := strings.TrimSpace(s[len(number):])
	n, err := strconv.ParseFloat(number, 64)
	switch per, known := bytesPer[unit]; {
	case err == nil && unit == "" && n > 0:
		return 0, fmt.Errorf("%q has no unit; write %sMB or %sGB", s, s, s)
	case err != nil || !known || !(n*per >= 1) || n*per > 1<<60:
		return 0, fmt.Errorf("%q is not a size; write a number above 0 and a unit (B, KB, MB, GB, TB; KiB, MiB, GiB, TiB) such as 256MB or 1GiB", s)
	default:
		return int64(n * per), nil
	}
}

// parseScalar fills v, a pointer to one of the types that are written as one word.
func parseScalar(s string, v any) (err error) {
	switch v := v.(type) {
	case *time.Duration:
		if *v, err = ParseDuration(s); err == nil && *v == 0 {
			return errors.New("must be longer than 0, such as 10s, 5m or 1h")
		}
	case *netip.Prefix:
		*v, err = ParsePrefix(s)
	case *rate:
		*v, err = parseRate(s)
	case *size:
		var n int64
		n, err = ParseSize(s)
		*v = size(n)
	}
	return err
}
