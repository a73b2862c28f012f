package config

import (
	"errors"
	"fmt"
	"math"
	"net/netip"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/goccy/go-yaml/ast"

	"github.com/vokter/vokter/internal/outbound"
	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/registry"
)

// ParseDuration reads a duration such as 90s, 10m or 1h30m that is not negative. Its
// errors say what to write instead.
func ParseDuration(s string) (time.Duration, error) {
	d, err := pipeline.ParseDuration(s)
	switch {
	case err == nil && d < 0:
		return 0, fmt.Errorf("%q is negative; write a duration such as 10s, 5m or 1h", s)
	case err == nil:
		return d, nil
	}
	if _, err := strconv.ParseFloat(s, 64); err == nil {
		return 0, fmt.Errorf("%q has no unit; write %ss, %sm or %sh", s, s, s, s)
	}
	zeros := strings.Map(func(r rune) rune {
		if '1' <= r && r <= '9' {
			return '0'
		}
		return r
	}, s)
	if _, err := time.ParseDuration(zeros); err == nil { // its numbers alone are wrong
		return 0, fmt.Errorf("%q is too long; the longest duration is %dh", s, math.MaxInt64/time.Hour)
	}
	return 0, fmt.Errorf("%q is not a duration; write a number and a unit such as 10s, 5m or 1h", s)
}

// ParsePrefix reads a network such as 10.0.0.0/8, or one address. Its errors say what
// to write instead.
func ParsePrefix(s string) (netip.Prefix, error) {
	// A slip in the length would open far more than was meant.
	if p, err := netip.ParsePrefix(s); err == nil && p != p.Masked() {
		return netip.Prefix{}, fmt.Errorf("%q is an address within a network; write %s or %s/%d", s, p.Masked(), p.Addr(), p.Addr().BitLen())
	}
	ps, err := outbound.ParseAllow([]string{s})
	if err != nil {
		return netip.Prefix{}, err
	}
	return ps[0], nil
}

// listenAddr is the address of the HTTP listener.
type listenAddr string

// rate is a number of events per second.
type rate float64

var secondsPerUnit = map[string]float64{"s": 1, "m": 60, "h": 3600}

func parseRate(s string) (rate, error) {
	number, unit, ok := strings.Cut(s, "/")
	n, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
	seconds, known := secondsPerUnit[strings.TrimSpace(unit)]
	if !ok || !known || err != nil || !(n > 0) || n > 1e9 {
		return 0, fmt.Errorf("%q is not a rate; write a number above 0 per second, minute or hour, such as 1/s, 30/m or 100/h", s)
	}
	return rate(n / seconds), nil
}

var bytesPerUnit = map[string]float64{
	"B": 1, "KB": 1e3, "MB": 1e6, "GB": 1e9, "TB": 1e12,
	"KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40,
}

// ParseSize reads a size such as 256MB or 1.5GiB, in bytes. Its errors say what to write
// instead.
func ParseSize(s string) (int64, error) {
	number := strings.TrimRight(s, "BKMGTi ")
	unit := strings.TrimSpace(s[len(number):])
	n, err := strconv.ParseFloat(number, 64)
	switch per, known := bytesPerUnit[unit]; {
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
			return errors.New("must be longer than 0; write a duration such as 10s, 5m or 1h")
		}
	case *netip.Prefix:
		*v, err = ParsePrefix(s)
	case *rate:
		*v, err = parseRate(s)
	case *listenAddr:
		*v, err = listenAddr(s), checkListen(s)
	case *registry.Size:
		var n int64
		n, err = ParseSize(s)
		*v = registry.Size(n)
	case *pipeline.Interval:
		*v, err = ParseInterval(s)
	case *retryLimit:
		var d time.Duration
		d, err = pipeline.ParseRetry(s)
		*v = retryLimit(d)
	case *digestTime:
		var g pipeline.Digest
		g, err = pipeline.ParseDigest(s)
		*v = digestTime(g)
	case *share:
		*v, err = parseShare(s)
	case *pipeline.MinChange:
		*v, err = pipeline.ParseMinChange(s)
	case *pipeline.Amount:
		*v = pipeline.Amount(s) // the subscription checks whether it is a share
	}
	return err
}

// ParseInterval reads an interval as pipeline.ParseInterval does. Its errors about a duration are those
// of ParseDuration.
func ParseInterval(s string) (pipeline.Interval, error) {
	if s == "never" || len(strings.Fields(s)) > 1 {
		return pipeline.ParseInterval(s)
	}
	var every time.Duration
	err := parseScalar(s, &every)
	return pipeline.Every(every), err
}

// onlyNever is "never".
type onlyNever bool

func (o *onlyNever) decodeYAML(d *decoder, n ast.Node, path string) {
	if s, ok := d.expandedValue(n); ok && s == "never" {
		*o = true
		return
	}
	d.failNode(n, "%s can only be never, for a page that is pushed and not fetched; how often a page is fetched is set in its subscriptions", path)
}

// toPipeline returns Never, or the zero Interval.
func (o onlyNever) toPipeline() (i pipeline.Interval) {
	if o {
		i = pipeline.Never
	}
	return i
}

// failureLimit is a number of failed checks, or "never".
type failureLimit int

func (t *failureLimit) decodeYAML(d *decoder, n ast.Node, path string) {
	s, ok := d.expandedValue(n)
	if !ok {
		return
	}
	_, number := n.(*ast.IntegerNode)
	switch i, err := strconv.Atoi(s); {
	case s == "never":
		*t = -1
	case err != nil || !number && s == d.rawValue(n):
		d.failNode(n, "%s must be a whole number or never, not %s", path, describeNode(n))
	case i < 1:
		d.failNode(n, "%s must be at least 1, not %d; write never for no limit", path, i)
	default:
		*t = failureLimit(i)
	}
}

// retryLimit is a duration, or "never", which is negative.
type retryLimit time.Duration

// decodeDigest fills g from a duration or a cron line, or from a mapping of that, every, and max.
func (d *decoder) decodeDigest(n ast.Node, g *pipeline.Digest, path string) {
	var m struct {
		Every digestTime `yaml:"every"`
		Max   int        `yaml:"max"`
	}
	if _, mapping := n.(*ast.MappingNode); !mapping {
		d.decodeValue(n, reflect.ValueOf(&m.Every).Elem(), path)
		*g = pipeline.Digest(m.Every)
		return
	}
	before := len(d.errs)
	d.decodeStruct(n, reflect.ValueOf(&m).Elem(), path)
	_, timed := d.positions.get(joinPath(path, "every"))
	_, bounded := d.positions.get(joinPath(path, "max"))
	switch {
	case len(d.errs) > before:
		return
	case !timed:
		d.failNode(n, `%s says no time; add one such as every: 1h or every: "0 9 * * 1-5 Europe/Berlin"`, path)
		return
	case bounded && m.Max == 0: // to the vocabulary 0 is "not given"
		d.failPath(joinPath(path, "max"), "%s: 0 is not between 1 and 1000", joinPath(path, "max"))
		return
	}
	*g = pipeline.Digest(m.Every)
	g.Max = m.Max
}

// decodeExpire fills e from a mapping of after and retry.
func (d *decoder) decodeExpire(n ast.Node, e *pipeline.Expire, path string) {
	var m struct {
		After failureLimit `yaml:"after"`
		Retry retryLimit   `yaml:"retry"`
	}
	d.decodeStruct(n, reflect.ValueOf(&m).Elem(), path)
	*e = pipeline.Expire{After: int(m.After), Retry: time.Duration(m.Retry)}
}

// digestTime is a duration or a cron line.
type digestTime pipeline.Digest

// share is a part of a whole, written in per cent.
type share float64

func parseShare(s string) (share, error) {
	number, percent := strings.CutSuffix(s, "%")
	f, err := strconv.ParseFloat(number, 64)
	if !percent || err != nil || !(f > 0 && f <= 100) {
		return 0, fmt.Errorf("%q is not a share; write a number above 0, up to 100, and %%, such as 50%%", s)
	}
	return share(f / 100), nil
}

var (
	_ yamlDecoder = (*onlyNever)(nil)
	_ yamlDecoder = (*failureLimit)(nil)
)
