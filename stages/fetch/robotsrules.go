package fetch

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
)

// robotsRules are the rules of a robots.txt for one program, as RFC 9309 defines them. The memory that they
// take, and the time to ask them, are in proportion to the length of the robots.txt.
type robotsRules []robotsRule

// robotsRule allows or forbids the paths that match its pattern.
type robotsRule struct {
	pattern string
	allow   bool
}

// parseRobots returns the rules in body for the program agent: those of all groups that name it, or, if
// none does, those of all groups for "*". Lines that mean nothing are left out.
func parseRobots(body []byte, agent string) robotsRules {
	var own, common robotsRules
	named := false                   // a group names the agent
	forAgent, forAll := false, false // whom the group is for
	naming := false                  // the names of a group are being read
	body = bytes.TrimPrefix(body, boms[0])
	for line := range bytes.Lines(bytes.ReplaceAll(body, []byte("\r"), []byte("\n"))) {
		line, _, _ = bytes.Cut(line, []byte("#"))
		field, value, ok := strings.Cut(string(line), ":")
		if !ok {
			continue
		}
		value = strings.TrimSpace(value)
		switch field = strings.ToLower(strings.TrimSpace(field)); field {
		case "user-agent":
			if !naming {
				naming, forAgent, forAll = true, false, false
			}
			switch {
			case value == "*":
				forAll = true
			case strings.EqualFold(productToken(value), agent):
				forAgent, named = true, true
			}
		case "allow", "disallow":
			naming = false
			if !strings.HasPrefix(value, "/") && !strings.HasPrefix(value, "*") {
				continue
			}
			rule := robotsRule{normalizePath(value), field == "allow"}
			if forAgent {
				own = append(own, rule)
			}
			if forAll {
				common = append(common, rule)
			}
		}
	}
	if named {
		return own
	}
	return common
}

// size returns about how many bytes of memory rs takes.
func (rs robotsRules) size() int {
	n := 0
	for _, r := range rs {
		n += 24 + len(r.pattern)
	}
	return n
}

// productToken returns the name of a program in a User-Agent, without its version and what follows.
func productToken(agent string) string {
	name, _, _ := strings.Cut(strings.TrimSpace(agent), "/")
	name, _, _ = strings.Cut(name, " ")
	return name
}

// allows reports whether path, with its query, may be fetched: the longest pattern that matches decides, and
// of two of the same length the one that allows.
func (rs robotsRules) allows(path string) bool {
	path = normalizePath(path)
	longest, allowed := 0, true
	for _, r := range rs {
		if n := len(r.pattern); (n > longest || n == longest && r.allow) && matchesPattern(r.pattern, path) {
			longest, allowed = n, r.allow
		}
	}
	return allowed
}

// matchesPattern reports whether path begins as pattern says: an asterisk stands for any characters, and a dollar
// sign at the end of pattern for the end of path.
func matchesPattern(pattern, path string) bool {
	pattern, whole := strings.CutSuffix(pattern, "$")
	part, pattern, more := strings.Cut(pattern, "*")
	path, ok := strings.CutPrefix(path, part)
	for ok && more {
		part, pattern, more = strings.Cut(pattern, "*")
		if !more && whole {
			return strings.HasSuffix(path, part)
		}
		_, path, ok = strings.Cut(path, part)
	}
	return ok && (path == "" || !whole)
}

// normalizePath returns a path or a pattern in one spelling: octets beyond ASCII are percent-encoded, and those
// that need not be encoded are not.
func normalizePath(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		c, encoded := s[i], s[i] > '~'
		if c == '%' && len(s) > i+2 {
			if octet, err := strconv.ParseUint(s[i+1:i+3], 16, 8); err == nil {
				c, encoded, i = byte(octet), true, i+2
			}
		}
		if encoded && !isUnreserved(c) {
			fmt.Fprintf(&b, "%%%02X", c)
		} else {
			b.WriteByte(c)
		}
	}
	return b.String()
}

// isUnreserved reports whether c means the same in a URL, percent-encoded or not (RFC 3986).
func isUnreserved(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || strings.IndexByte("-._~", c) >= 0
}
