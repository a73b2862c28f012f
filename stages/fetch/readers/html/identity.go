package html

import (
	"strings"
)

// text is a value as the tokenizer or the tree has it.
type text interface{ string | []byte }

// FNV-1a.
const (
	hashStart = 2166136261
	hashPrime = 16777619
)

func mix(a, b uint32) uint32 {
	h := (a ^ b*2654435761) * 2246822519
	return h ^ h>>15
}

// hashText returns the hash of s, which is not 0.
func hashText[T text](s T) uint32 {
	h := uint32(hashStart)
	for i := range len(s) {
		h = (h ^ uint32(s[i])) * hashPrime
	}
	return max(h, 1)
}

// hashClasses returns the hashes of the first classes in the value of a class attribute, without digits: many
// pages number their items.
func hashClasses[T text](s T) (classes [maxClasses]uint32) {
	n, h := 0, uint32(hashStart)
	for i := 0; i <= len(s) && n < maxClasses; i++ {
		switch {
		case i == len(s) || s[i] <= ' ':
			if h != hashStart {
				classes[n] = max(h, 1)
				n++
				h = hashStart
			}
		case s[i] < '0' || s[i] > '9':
			h = (h ^ uint32(s[i])) * hashPrime
		}
	}
	return classes
}

// hashTarget returns the hash of what a link says of the item in which it stands: its target without fragment and
// without parameters that tell sessions or campaigns. It is 0 where the link says nothing.
func hashTarget[T text](href T) uint32 {
	from, to := 0, len(href)
	for from < to && href[from] <= ' ' {
		from++
	}
	for to > from && href[to-1] <= ' ' {
		to--
	}
	path, scheme := to, false
	for i := from; i < to; i++ {
		switch c := href[i]; {
		case c == '#':
			to = i
			path = min(path, to)
		case c == '?' || c == ';':
			path = min(path, i)
		case c == '/':
			scheme = true // none follows
		case c == ':' && !scheme && path == to:
			scheme = true
			if s := strings.ToLower(string(href[from:i])); s != "http" && s != "https" {
				return 0
			}
		}
	}
	if from == to || to-from > maxLink || strings.Contains(string(href[from:path]), "/cdn-cgi/") {
		return 0
	}
	h := hashText(href[from:path])
	for path < to {
		end := path + 1
		for end < to && href[end] != '&' && href[end] != '?' && href[end] != ';' {
			end++
		}
		if part := href[path+1 : end]; !isTracking(string(part)) {
			h = mix(h, hashText(part))
		}
		path = end
	}
	return max(h, 1)
}

// isTracking reports whether a parameter of a URL tells a session or a campaign.
func isTracking(parameter string) bool {
	name, _, _ := strings.Cut(strings.ToLower(parameter), "=")
	return sessionParameters[name] || strings.HasPrefix(name, "utm_") || name == "fbclid" || name == "gclid"
}
