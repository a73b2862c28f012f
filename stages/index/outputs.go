package index

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/vokter/vokter/pipeline/failure"
	"github.com/vokter/vokter/pipeline/flow"
	"github.com/vokter/vokter/pipeline/pageurl"
	"github.com/vokter/vokter/pipeline/text"
)

// execute carries out one output of apply. m is the message that caused it, p the page after
// it.
func (s *Stage) execute(ctx context.Context, tx flow.Tx, m flow.Message, p *Page, o output) error {
	// Functions capture this key, not m and p, which each call would then allocate.
	key := m.Key
	st := tx.State(key)
	switch o := o.(type) {
	case requestCheck:
		return s.publishRequest(tx, st, o)
	case newVersion:
		return s.storeVersion(ctx, tx, st, o)
	case rebase:
		return storeRebased(st, o)
	case storeTable:
		return saveTable(st, o)
	case keepUnmade:
		return st.Set(unmadeName+o.Document, o.Packed)
	case dropUnmade:
		return st.Delete(unmadeName + o.Document)
	case keepBody:
		return storeBody(st, o.Body)
	case dropBody:
		return st.Delete(bodyName)
	case record:
		return storeRecord(st, o)
	case prune:
		return s.pruneVersions(tx, st, o)
	case keepTold:
		return noteTold(st, o)
	case dropDocument:
		if err := clearNames(st, versionsName+o.Document+"/"); err != nil {
			return err
		}
		if err := clearNames(st, screenshotsName+o.Document+"/"); err != nil {
			return err
		}
		for _, name := range []string{keptName, itemsName, tokensName, restlessName, unmadeName} {
			if err := st.Delete(name + o.Document); err != nil {
				return err
			}
		}
	case stamp:
		return s.storeStamp(tx, st, m, o)
	case outage:
		return emitJSON(tx, flow.Message{
			ID:    flow.DeriveID("outage", m.Key, o.Incarnation, strconv.FormatUint(o.Stamp, 10)),
			Topic: flow.TopicChanges, Key: m.Key, Type: flow.TypeOutage, Subject: m.Key, Time: s.cfg.Now(),
		}, o.Outage)
	case pageDormant:
		tx.OnCommit(func() { s.reportDormant(key, o) })
	case withdraw:
		tx.Emit(o.Message(s.cfg.Now()))
	case storeExpired:
		return setValue(st, expiredNames+o.Name(), o.ExpiredSubscription)
	case deleteExpired:
		return st.Delete(expiredNames + o.Name)
	case keepLinks:
		return s.storeLinks(tx, st, m, o.Links)
	case reportLinks:
		return s.reportStoredLinks(tx, st, m, o.Root)
	case healthEvent:
		tx.Emit(flow.HealthMessage(o.Health))
	case publishCurrent:
		return s.emitCurrent(tx, st, m.Key, o)
	case publishGone:
		tx.Emit(flow.Gone(m.Key, o.Incarnation, o.Document, o.Time))
	case decide:
		s.decide(tx, m, o)
	case resumeDue:
		return emitJSON(tx, flow.Message{
			ID:    flow.DeriveID("resume", m.Key, o.At.Format(time.RFC3339Nano)),
			Topic: flow.TopicDocuments, Key: m.Key, Type: flow.TypeResume, Subject: m.Key, Time: s.cfg.Now(),
		}, flow.ResumeCommand{URL: m.Key, Due: true})
	case wakeAt:
		if o.AtStart {
			tx.WakeAt(m.Key, o.Time, flow.AtStart)
		} else {
			tx.WakeAt(m.Key, o.Time)
		}
	case checkDone:
		document := p.onlyDocument()
		tx.OnCommit(func() { s.reportCheck(key, document, o) })
	case pushRead:
		document := p.onlyDocument()
		tx.OnCommit(func() { s.reportPush(key, document, o) })
	case pageEnded:
		tx.WakeAt(m.Key, noWake)
		tx.OnCommit(func() { s.reportEnd(key, o) })
		return emitJSON(tx, flow.Message{
			ID:    flow.DeriveID("ended", m.Key, o.Incarnation),
			Topic: flow.TopicChanges, Key: m.Key, Type: flow.TypeEnded, Subject: m.Key, Time: s.cfg.Now(),
		}, flow.Ended{Page: m.Key, Incarnation: o.Incarnation, Listed: o.Listed})
	case deleteState:
		if o.All {
			return clearNames(st, "")
		}
		return clearNames(st, "", expiredNames, historyName)
	}
	return nil
}

// publishRequest publishes a request.
func (s *Stage) publishRequest(tx flow.Tx, st flow.State, o requestCheck) (err error) {
	page, nonce := o.Request.Page, o.Request.Nonce // what the functions capture, and not o
	sent := &request{interval: o.Interval}
	s.run.requests.Begin(page, nonce, s.cfg.Epoch(page), sent)
	tx.OnCommit(func() { s.run.requestSent(page, nonce, sent, s.cfg.Steady()) })
	if !o.Since.IsZero() && s.cfg.Now().Sub(o.Since) > lateDelay(o.Interval) {
		tx.OnCommit(func() { s.run.noteLate(page, s.cfg.Steady()) })
	}
	if o.Rebase {
		if o.Request.Rebase, err = loadBody(st); err != nil {
			return err
		}
	}
	tx.Emit(o.Request.Message(s.cfg.Now()))
	return nil
}

// storeStamp stores a record of a subscription and publishes it.
func (s *Stage) storeStamp(tx flow.Tx, st flow.State, m flow.Message, o stamp) error {
	r := o.Stamped
	name := subscriptionsName + r.Name()
	if r.Until == flow.Forever {
		if err := setValue(st, name, r); err != nil {
			return err
		}
	} else if err := st.Delete(name); err != nil {
		return err
	}
	if !o.Repeats && r.Followed == nil && (r.Until == flow.Forever || r.End != "") { // not if another record replaces this one
		if err := s.updateTree(tx, st, m, r); err != nil {
			return err
		}
	}
	return emitJSON(tx, flow.Message{
		ID:    flow.DeriveID("stamp", r.Page, r.PageIncarnation, strconv.FormatUint(r.Stamp, 10)),
		Topic: flow.TopicSubscriptions, Key: r.Page, Type: flow.TypeStamp, Subject: r.Page, Time: s.cfg.Now(),
	}, r)
}

// decide answers the command m after the commit. If its sender may wait for the answer, in this
// process or another, the commit is synced to disk first.
func (s *Stage) decide(tx flow.Tx, m flow.Message, o decide) {
	r, d := o.Refusal, flow.Decision{Command: m.ID, Applied: o.Applied}
	if r != nil {
		d.Code, d.Reason = r.Code, r.Message
	}
	if isAwaited(m) {
		tx.Sync()
		if r != nil {
			tx.Emit(flow.HealthMessage(refusedEvent(m, r, s.cfg.Now())))
		}
	}
	if isAwaited(m) || o.Reply {
		tx.Emit(d.Message(m.Key, s.cfg.Now()))
	}
	tx.OnCommit(func() {
		switch {
		case r == nil:
		case m.Type == flow.TypeApply:
			s.refusals.add(m.Key)
			s.cfg.Logger.Warn("a subscription of the configuration is not in force", "page", pageurl.Redacted(m.Key), "code", r.Code, "reason", r.Message)
		default:
			level := slog.LevelInfo
			if r.Code == flow.CodeConflict && isAwaited(m) {
				level = slog.LevelDebug // the sender is answered, and may just have asked twice
			}
			s.cfg.Logger.Log(context.Background(), level, "command refused", "page", pageurl.Redacted(m.Key), "type", m.Type, "code", r.Code, "reason", r.Message)
		}
		s.cfg.Decided(d)
	})
}

// memoryFor is how many bytes of memory it takes to store a version, for each byte of its text.
const memoryFor = 64

// storeVersion stores a version with its tokens, and emits its snapshot.
func (s *Stage) storeVersion(ctx context.Context, tx flow.Tx, st flow.State, v newVersion) error {
	snap := v.Snapshot
	free, err := s.cfg.Memory.Take(ctx, memoryFor*flow.UnpackedSize(v.Packed))
	if err != nil {
		return err
	}
	defer free()
	if snap.New == "" {
		if snap.New, err = flow.UnpackText(v.Packed); err != nil {
			return failure.Permanent(fmt.Errorf("check %d of %s: %w", snap.Check, snap.Page, err))
		}
	}
	v.Language.Fallback = s.fallbackLanguage()
	var last StoredVersion
	if snap.Previous > 0 {
		var ok bool
		if last, ok, err = LoadVersion(st, snap.Document, snap.Previous); err != nil {
			return err
		}
		if !ok {
			return failure.Broken(fmt.Errorf("index: version %d of %s is missing in the store", snap.Previous, snap.Page))
		}
		if err := setOldText(&snap, st, v, last); err != nil {
			return err
		}
	}
	if v.Feed != nil {
		if err := st.Set(itemsName+snap.Document, v.Feed.seen); err != nil {
			return err
		}
	}
	snap.OldKeys, snap.NewKeys = flow.UnpackKeys(snap.OldPacked), flow.UnpackKeys(v.Packed)
	analysis := text.AnalyzePacked(snap.New, snap.NewKeys, nil)
	if err := storeAnalysis(st, snap.Document, analysis); err != nil {
		return err
	}
	snap.Analysis = analysis
	language, from := languageOf(snap, v.Language, last)
	snap.Language = language
	stored := StoredVersion{
		Time: snap.Time.UTC(), Check: snap.Check, TextHash: snap.TextHash, Title: snap.Title, ContentType: snap.ContentType,
		Language: language, LanguageFrom: from, Extractor: v.Extractor, Packed: v.Packed, Previous: snap.Previous,
		Screenshot: len(v.Screenshot) > 0, Restless: snap.Restless, Words: snap.Words, Whole: snap.Whole,
	}
	if v.Feed != nil && snap.Previous > 0 {
		stored.Base = snap.OldPacked
	}
	if v.Replaces {
		stored.Previous = last.Previous
		stored.Words = nil // they are of the text that it replaced
	}
	b, err := encode(stored)
	if err != nil {
		return err
	}
	if err := st.Set(versionName(snap.Document, snap.N), b); err != nil {
		return err
	}
	if stored.Screenshot {
		if err := st.Set(screenshotName(snap.Document, snap.N), v.Screenshot); err != nil {
			return err
		}
	}
	kept := keptVersion{N: snap.N, At: snap.Time.Unix(), Picture: stored.Screenshot}
	if err := addKept(st, snap.Document, kept, v.Replaces); err != nil {
		return err
	}
	tx.Emit(snap.Message())
	tx.OnCommit(func() {
		s.cfg.Observe.Note(flow.Observation{
			Kind: flow.KindVersion, Page: snap.Page, Document: snap.Document, URL: snap.Page, N: int(snap.N), Time: snap.Time,
		})
	})
	return nil
}

// setOldText sets the text that snap is compared with, and its tokens. Last is the version before it. The text is
// unpacked only where it tells the language.
func setOldText(snap *flow.Snapshot, st flow.State, v newVersion, last StoredVersion) (err error) {
	if v.Feed != nil {
		snap.Old, snap.OldPacked = v.Feed.base, flow.PackText(v.Feed.base, v.Feed.keys...)
		snap.OldTokens = text.PackTokens(text.Analyze(snap.Old))
		return nil
	}
	snap.OldPacked = last.Packed
	if snap.OldTokens, _, err = st.Get(tokensName + snap.Document); err != nil {
		return err
	}
	if snap.Old == "" && detectsLanguage(v.Language) {
		if snap.Old, err = flow.UnpackText(last.Packed); err != nil {
			return failure.Broken(fmt.Errorf("index: version %d of %s: %w", snap.Previous, snap.Page, err))
		}
	}
	return nil
}

// emitJSON emits m with v as its body.
func emitJSON(tx flow.Tx, m flow.Message, v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return failure.Permanent(fmt.Errorf("%s %s: %w", m.Type, m.ID, err))
	}
	m.Body, m.Header = b, map[string]string{"content-type": "application/json"}
	tx.Emit(m)
	return nil
}

// clearNames deletes all names that begin with prefix, except those that begin with one of but.
func clearNames(st flow.State, prefix string, but ...string) error {
	var names []string
	for name, v := range st.Scan(prefix) {
		if v.Err != nil {
			return v.Err
		}
		if !slices.ContainsFunc(but, func(b string) bool { return strings.HasPrefix(name, b) }) {
			names = append(names, name)
		}
	}
	for _, name := range names {
		if err := st.Delete(name); err != nil {
			return err
		}
	}
	return nil
}

// noWake cancels a wake.
var noWake time.Time

// reportCheck logs and reports a complete check of page; document is its only one, if it has one.
func (s *Stage) reportCheck(page, document string, c checkDone) {
	s.run.checkDone(page)
	ob := flow.Observation{Kind: flow.KindCheck, Page: page, Document: document, URL: page, Time: c.Time}
	if c.Class == "" && c.Before != "" {
		ob.N = 1
	}
	s.cfg.Observe.Note(ob)
	ob.N = 0
	switch {
	case c.DeadLink: // this is no failure of the run
	case c.Class != "":
		if c.Before != "" {
			ob.N = 1
		}
		ob.Kind, ob.Class, ob.Text = flow.KindFailed, c.Class, cmp.Or(c.Reason, c.Class)
		s.cfg.Observe.Note(ob)
	case c.Unchanged:
		ob.Kind = flow.KindUnchanged
		s.cfg.Observe.Note(ob)
	}
	if len(c.Passed) > 0 { // explain says it of every check
		s.cfg.Logger.Warn("parts of a page were passed over", "page", page, "reason", strings.Join(c.Passed, "; "))
	}
	switch {
	case !c.DeadLink:
		s.hosts.checked(page, c)
	case c.Class != c.Before:
		s.cfg.Logger.Info("a linked page cannot be read", "page", page, "class", c.Class, "reason", c.Reason)
	}
}

// reportDormant logs and reports that page is dormant.
func (s *Stage) reportDormant(page string, d pageDormant) {
	s.hosts.dormantNow(page, d)
	s.cfg.Observe.Note(flow.Observation{Kind: flow.KindDormant, Page: page, URL: page, Time: s.cfg.Now(), Class: d.Class, Text: cmp.Or(d.Reason, d.Class)})
}

// reportEnd logs and reports that page ended.
func (s *Stage) reportEnd(page string, e pageEnded) {
	ob := flow.Observation{Kind: flow.KindEnded, Page: page, URL: page, Time: s.cfg.Now()}
	if e.Expiry != nil {
		ob.Time, ob.Text = e.Expiry.Time, "expired: "+e.Expiry.Class
	}
	s.hosts.ended(page, e.Expiry)
	s.cfg.Observe.Note(ob)
}

// reportHeld logs and reports that page will not be checked again in this limited run, since its host asked
// to be left alone.
func (s *Stage) reportHeld(page string, until time.Time) {
	if !s.run.stopWaiting(page) {
		return
	}
	reason := "the host asked to be left alone until " + until.UTC().Format(time.RFC3339)
	s.cfg.Logger.Warn("page will not be checked again in this run", "page", page, "reason", reason)
	s.cfg.Observe.Note(flow.Observation{Kind: flow.KindHeld, Page: page, URL: page, Time: s.cfg.Now(), Text: reason})
}

// detectsLanguage reports whether the language is detected in the texts: neither the user nor the page names it.
func detectsLanguage(choice text.LanguageChoice) bool {
	choice.Text = ""
	_, from := choice.Language()
	return from == text.FromFallback
}

// languageOf returns the language of the version in snap, and what decided it. last is the previous
// version. Where neither the user nor the page names the language, it is detected in the text. A
// detected language stands until most of the text is new. Where none was detected, the next versions
// that change few words are not searched again, but every redetectEvery-th version is.
func languageOf(snap flow.Snapshot, choice text.LanguageChoice, last StoredVersion) (string, text.LanguageSource) {
	page := choice.Text
	choice.Text = ""
	if language, from := choice.Language(); from != text.FromFallback {
		return language, from
	}
	switch {
	case snap.Previous == 0:
	case last.LanguageFrom == text.FromText:
		choice.Text = last.Language
		if !differBy(snap.Old, snap.New, mostlyNew) {
			return choice.Language()
		}
	case last.LanguageFrom == text.FromFallback && snap.N%redetectEvery != 0 && !differBy(snap.Old, snap.New, hardlyNew):
		choice.Text = page
		return choice.Language()
	}
	choice.Text = cmp.Or(text.Detect(snap.New), page, choice.Text)
	return choice.Language()
}

const (
	// mostlyNew and hardlyNew are shares of the words of two versions, in per cent.
	mostlyNew = 30
	hardlyNew = 5
	// redetectEvery bounds how long small changes can turn a text without a language into one with a
	// language before that is detected.
	redetectEvery = 16
)

// buckets is how many counters differ has for words. Words that share a counter can make two texts
// look more similar than they are, never less.
const buckets = 4096

// differBy estimates whether more than share per cent of the words of old and new occur in only one of
// them.
func differBy(old, new string, share int) bool {
	var t [buckets]int32
	words := countWords(&t, old, -1) + countWords(&t, new, 1)
	n := 0
	for _, count := range t {
		n += int(max(count, -count))
	}
	return n*100 > words*share
}

// countWords adds n to the counter of each word of s and returns how many words there are. Words are
// separated by white space.
func countWords(t *[buckets]int32, s string, n int32) int {
	const offset, prime = 2166136261, 16777619 // FNV-1a
	words := 0
	h := uint32(offset)
	for i := range len(s) {
		if c := s[i]; c > ' ' {
			h = (h ^ uint32(c)) * prime
			continue
		}
		if h != offset {
			t[(h^h>>16)%buckets] += n
			words++
			h = offset
		}
	}
	if h != offset {
		t[(h^h>>16)%buckets] += n
		words++
	}
	return words
}
