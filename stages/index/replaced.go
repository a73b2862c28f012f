package index

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/failure"
	"github.com/vokter/vokter/pipeline/flow"
	"github.com/vokter/vokter/pipeline/text"
)

// replacedAfter is how many checks in a row must find a page replaced until it counts as
// rewritten, and its text becomes a version.
const replacedAfter = 20

// Limits of replacement.
const (
	shrunkFrom = 100 // tokens of a text that can shrink to a shell
	shrunkTo   = 20  // a shell has at most one of so many tokens
	shortText  = 300 // tokens of the longest text that can be an error page or a login wall
)

// replacementMarks are what error pages, login walls, challenges and pages without JavaScript say, in small
// letters.
var replacementMarks = []string{
	// Shells that need a browser.
	"javascript", "enable cookies", "loading...", "loading…", "please wait",
	// Challenges.
	"captcha", "you are human", "you are a human", "are you human", "you are not a robot", "you're not a robot", "are a robot", "just a moment",
	"checking your browser", "unusual traffic", "security check", "ddos", "ray id",
	// Login walls.
	"password", "passwort", "kennwort", "mot de passe", "contraseña", "senha", "wachtwoord", "lösenord", "hasło", "heslo", "пароль", "şifre",
	"パスワード", "密码", "密碼", "비밀번호", "please log in", "please sign in", "log in to continue", "sign in to continue", "must be logged in",
	// Error pages.
	"access denied", "access to this page has been denied", "permission denied", "forbidden", "not authorized", "unauthorized", "request blocked",
	"have been blocked", "not found", "page doesn't exist", "page does not exist", "error 4", "error 5", "error occurred", "server error",
	"bad gateway", "gateway time", "service unavailable", "temporarily unavailable", "too many requests", "went wrong", "under maintenance",
	"for maintenance", "scheduled maintenance", "try again later",
}

// replacementReason returns why new looks like an error page, a login wall, a challenge or an
// unrendered shell in place of old, and an empty string if it does not.
func replacementReason(old, new string) string {
	before, after := text.Analyze(old), text.Analyze(new)
	n, m := len(before.Tokens), len(after.Tokens)
	if n >= shrunkFrom && m*shrunkTo <= n {
		return fmt.Sprintf("its text shrank from %d tokens to %d", n, m)
	}
	if m > shortText {
		return ""
	}
	mark := newMark(old, new)
	if mark == "" {
		return ""
	}
	kept := commonTokens(before, after)
	if kept*2 > n {
		return ""
	}
	return fmt.Sprintf("its text of %d tokens says %q, and only %d of the %d tokens of the last version are in it", m, mark, kept, n)
}

// newMark returns the first of marks that is in new and not in old, or an empty string.
func newMark(old, new string) string {
	old, new = strings.ToLower(old), strings.ToLower(new)
	for _, mark := range replacementMarks {
		if strings.Contains(new, mark) && !strings.Contains(old, mark) {
			return mark
		}
	}
	return ""
}

// commonTokens returns how many tokens both texts have, in any order; case does not count.
func commonTokens(a, b *text.Doc) (n int) {
	left := make(map[string]int, len(b.Tokens))
	for i := range b.Tokens {
		left[strings.ToLower(b.Text(i))]++
	}
	for i := range a.Tokens {
		if t := strings.ToLower(a.Text(i)); left[t] > 0 {
			left[t]--
			n++
		}
	}
	return n
}

// replacements returns for each document of p with View.Replaced why its new text in os looks
// replaced, by ID. It loads the current texts.
func (s *Stage) replacements(ctx context.Context, st flow.State, p *Page, os ...flow.Outcome) (map[string]string, error) {
	var found map[string]string
	for _, o := range os {
		d := p.Document(o.Document)
		if o.Kind != flow.OutcomeRead || d == nil || !d.View.Replaced || d.TextHash == "" || d.TextHash == o.TextHash {
			continue
		}
		why, err := s.replacementReason(ctx, st, d, o)
		if err != nil {
			return nil, err
		}
		if why == "" {
			continue
		}
		if found == nil {
			found = make(map[string]string)
		}
		found[d.ID] = why
	}
	return found, nil
}

// replacementReason calls replacement with the current text of d and that of o.
func (s *Stage) replacementReason(ctx context.Context, st flow.State, d *Document, o flow.Outcome) (string, error) {
	current, ok, err := LoadVersion(st, d.ID, d.N)
	if err != nil || !ok {
		return "", err
	}
	free, err := s.cfg.Memory.Take(ctx, memoryFor*(flow.UnpackedSize(current.Packed)+flow.UnpackedSize(o.Packed)))
	if err != nil {
		return "", err
	}
	defer free()
	old, err := flow.UnpackText(current.Packed)
	if err != nil {
		return "", failure.Broken(fmt.Errorf("index: version %d of document %s: %w", d.N, d.ID, err))
	}
	new, err := o.Content()
	if err != nil {
		return "", failure.Permanent(fmt.Errorf("check %d of %s: %w", o.Check, o.Page, err))
	}
	return replacementReason(old, new), nil
}

// isReplaced reports whether the text of o takes the place of the document without being one of its
// texts. Then the check failed for d, and the current version stays.
func (a *applier) isReplaced(d *Document, o flow.Outcome) bool {
	why := a.replacements[d.ID]
	hash := a.comparedHash(d, o)
	known := slices.ContainsFunc(d.Changes, func(v madeVersion) bool { return v.TextHash == hash })
	if why == "" || known {
		d.Replaced = 0
		return false
	}
	if d.Replaced++; d.Replaced >= replacedAfter {
		return false
	}
	reason := fmt.Sprintf("the page looks replaced: %s (check %d in a row of %d, after which it counts as rewritten)", why, d.Replaced, replacedAfter)
	open := a.p.Open
	open.Replaced = true
	open.noteFailure(pipeline.FailReplaced, reason)
	open.Reached = open.Reached || !a.countsForExpiry(pipeline.FailReplaced)
	a.documentGone(d, o, pipeline.FailReplaced, reason)
	return true
}

// flipsBack reports whether the text of o is one of the last changes of d, so that it is not a new
// version. The current version stays what the next version is compared with: the versions are
// a chain, and what readers know of the document is always its current version.
func (a *applier) flipsBack(d *Document, o flow.Outcome) bool {
	hash := a.comparedHash(d, o)
	i := slices.IndexFunc(d.Changes, func(v madeVersion) bool { return v.TextHash == hash })
	if i < 0 {
		return false
	}
	d.forgetCandidate()
	if a.p.Open.Note == "" {
		a.p.Open.Note = fmt.Sprintf("the page has the text of version %d again, which is not reported because of flip_flop: %d; version %d stays current",
			d.Changes[i].N, d.View.FlipFlop, d.N)
	}
	return true
}

// noteChange notes the current version among the changes; hash is that by which its text is compared. If it is a
// baseline, because previous is 0, nobody was told its text and none of the earlier texts counts any more.
func (d *Document) noteChange(previous uint64, hash string) {
	switch k := d.View.FlipFlop; {
	case previous == 0 || k == 0:
		d.Changes = nil
	default:
		d.Changes = append(d.Changes, madeVersion{d.N, hash})
		d.Changes = slices.Delete(d.Changes, 0, max(len(d.Changes)-k, 0))
	}
}

// rehashChanges notes that the text of the current version was extracted again by new rules and now has
// the given hash. The hashes of the other changes are of the old rules, which no text has again.
func (d *Document) rehashChanges(hash string) {
	d.Changes = slices.DeleteFunc(d.Changes, func(v madeVersion) bool { return v.N != d.N })
	for i := range d.Changes {
		d.Changes[i].TextHash = hash
	}
}
