package index

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"iter"
	"maps"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/failure"
	"github.com/vokter/vokter/pipeline/flow"
	"github.com/vokter/vokter/test/txtest"
)

// storedPage is how a page stands in the store, by format 1, and storedPageProgress its progress.
const (
	storedPage         = `05a9017568747470733a2f2f6578616d706c652e636f6d2f61027753544f52452f646f63756d656e74732f332f3132333435030404816479616d6c0581a2011b0000008bb2c9700002030681a401781a394439324d54565435454d4a324c54384a5043454b42494d4638041106784039383264396533656239393666353539653633336634643139346465663337363164393039663561336236343764316138353166656164363763333263396431090307a1617803147422356538622d363063316432663361346235632216784032333064383335386463386538383930623463353864656562363239313265653266323033353761653932613563633836316239386536386665333161636235`
	storedPageProgress = `18ab6fd9feba48000105ac011b619a4281d38c0527021903e8031b18ab6f4053a9800004a10201051b18ab6fcc0672f000061b0000008bb2c9700007f5091b18ab7286846220000a1b0000034630b8a0000f071066737461747573151b18ab6f6a3c7f8800`
)

// TestPageFormat: a page that was stored can be read, and fields that are empty take no bytes.
func TestPageFormat(t *testing.T) {
	st := txtest.New().Begin().State(page)
	want := benchPage()
	want.Keep, want.Gone = []string{"yaml"}, map[string]uint64{"x": 3}
	want.Wake = wakeAt{t0.Add(11 * time.Minute), true}
	want.Failures, want.Trouble, want.NotBefore, want.Wish = 7, "status", t0.Add(time.Hour), time.Hour
	for _, c := range []struct{ name, stored string }{{pageName, storedPage}, {progressName, storedPageProgress}} {
		b, err := hex.DecodeString(c.stored)
		if err != nil {
			t.Fatal(err)
		}
		if err := st.Set(c.name, b); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := Load(st); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v (%v), want %+v", got, err, want)
	}
	tx := txtest.New().Begin()
	again := tx.State(page)
	if err := newCache().store(tx, page, 1, nil, &want); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{pageName, progressName} {
		want, _, _ := st.Get(name)
		if got, _, err := again.Get(name); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s: got %x (%v)", name, got, err)
		}
	}
}

// fail brings a failed outcome of the last request.
func (d *desk) fail(class string) {
	d.Helper()
	o := flow.Outcome{
		Page: page, Incarnation: d.request.Incarnation, Check: d.request.Check, Nonce: d.request.Nonce, Kind: flow.OutcomeFailed,
		Class: class, Reason: "why", Time: d.now,
	}
	d.handle(o.Message())
}

func (d *desk) apply(list ...pipeline.Subscription) {
	d.Helper()
	d.command(flow.TypeApply, flow.ApplyCommand{URL: page, Origin: "yaml", Subscriptions: list})
}

// state is what is committed for the page.
func (d *desk) state() flow.State { return d.store.Begin().State(page) }

// expiry is how the page was given up, or nil.
func (d *desk) expiry() (*Expiry, error) {
	p, err := Load(d.state())
	return p.Expiry, err
}

func TestAPageExpiresThroughRestarts(t *testing.T) {
	d := newDesk(t, Config{Expire: pipeline.Expire{Retry: -1}})
	d.apply(sub("a", pipeline.View{}))
	d.subscribe("b")
	d.answer(english)
	if s, err := flow.SnapshotFrom(d.out[0]); err != nil || s.Lineage != "S" {
		t.Errorf("got %+v (%v), want the store named", s, err)
	}
	var events []string
	for i := range 10 {
		d.restart(Config{Expire: pipeline.Expire{Retry: -1}})
		d.wake()
		d.restart(Config{Expire: pipeline.Expire{Retry: -1}})
		d.fail(pipeline.FailStatus)
		for _, m := range d.out {
			if m.Type == flow.TypeHealth {
				h := body[pipeline.Health](d, m)
				events = append(events, string(h.Event))
				if m.ID != h.ID || m.Key != page || h.Class != pipeline.FailStatus || h.Count != i+1 || !h.Since.Before(h.Time) {
					t.Errorf("got %+v in %+v", h, m)
				}
			}
		}
	}
	if want := []string{"failing", "expired"}; !slices.Equal(events, want) {
		t.Errorf("got events %v, want %v", events, want)
	}
	if want := []string{flow.TypeStamp, flow.TypeStamp, flow.TypeOutage, flow.TypeHealth, flow.TypeEnded}; !slices.Equal(d.types(), want) {
		t.Errorf("got %v, want %v", d.types(), want)
	}
	o, e := body[flow.Outage](d, d.out[2]), body[flow.Ended](d, d.out[4])
	if o.First != 3 || o.Stamp != 4 || e.Incarnation == "" || o.Failures != 10 || o.Lineage != "S" || d.out[2].Topic != flow.TopicChanges || d.out[4].Topic != flow.TopicChanges {
		t.Errorf("got %+v, %+v", o, e)
	}
	got := slices.DeleteFunc(d.store.Names(page), func(name string) bool { return strings.HasPrefix(name, historyName) })
	if want := []string{progressName, pageName, "exp/" + whole + "/a", "exp/" + whole + "/b"}; !slices.Equal(got, want) {
		t.Errorf("got names %q, want %q", got, want)
	}
	if _, ok := d.store.Wake(page); ok {
		t.Error("an expired page has a wake")
	}

	xs, err := Expired(d.state())
	if err != nil || len(xs) != 2 || xs[0].Subscription.Client != "a" || xs[0].Origin != "yaml" || xs[0].End != flow.EndExpired ||
		xs[0].Reason != "why" || xs[0].Class != pipeline.FailStatus || !xs[0].Time.Equal(o.Time) {
		t.Errorf("got %+v (%v)", xs, err)
	}
	if x, err := d.expiry(); err != nil || x == nil || x.Failures != 10 || !x.Time.Equal(o.Time) {
		t.Errorf("got %+v (%v)", x, err)
	}
	if got, err := Origins(d.state()); err != nil || !slices.Equal(slices.Sorted(maps.Keys(got)), []string{"api", "yaml"}) {
		t.Errorf("got origins %v (%v)", got, err)
	}

	d.restart(Config{Expire: pipeline.Expire{Retry: -1}})
	d.apply(sub("a", pipeline.View{}))
	if len(d.out) != 0 {
		t.Errorf("got %v of the list it had", d.types())
	}
	d.command(flow.TypeResume, flow.ResumeCommand{URL: page, Client: "a"})
	if got := body[flow.Stamped](d, d.out[0]); got.Subscription.Client != "a" || got.Until != flow.Forever {
		t.Errorf("got %+v", got)
	}
	if !slices.Contains(d.types(), flow.TypeRequest) {
		t.Errorf("got %v, want a check", d.types())
	}
	d.cancel("a")
	d.cancel("b")
	if got := d.store.Names(page); len(got) != 0 {
		t.Errorf("got %q left", got)
	}
	d.cancel("b")
	if got := d.codes[len(d.codes)-1]; got != flow.CodeNotFound {
		t.Errorf("got %d of a cancel of nothing", got)
	}
}

func TestAReceiverExpiresThroughItsCommands(t *testing.T) {
	d := newDesk(t, Config{})
	d.apply(to("one", "a"), to("two", "a", "b"))
	expire := func(receiver string) {
		d.command(flow.TypeExpire, flow.ExpireCommand{URL: page, Receiver: receiver, Reason: "410 Gone"})
	}
	addresses := func(receiver string) bool {
		t.Helper()
		rs, err := Receivers(d.state())
		if err != nil {
			t.Fatal(err)
		}
		return slices.Contains(rs, receiver)
	}
	if !addresses("a") || !addresses("b") || addresses("c") {
		t.Error("the page does not know its receivers")
	}
	expire("a")
	if want := []string{flow.TypeStamp}; !slices.Equal(d.types(), want) {
		t.Errorf("got %v, want %v", d.types(), want)
	}
	expire("b")
	if got, want := d.store.Names(page), []string{progressName, pageName, "exp/" + whole + "/one", "exp/" + whole + "/two"}; !slices.Equal(got, want) {
		t.Errorf("got names %q, want %q", got, want)
	}
	if xs, err := Expired(d.state()); err != nil || xs[1].Reason != "410 Gone" || xs[1].End != flow.EndReceiver {
		t.Errorf("got %+v (%v)", xs, err)
	}
	if !addresses("a") {
		t.Error("a recovery is not for the page")
	}
	d.command(flow.TypeResume, flow.ResumeCommand{URL: page, Receiver: "a"})
	if subs, err := Subscriptions(d.state()); err != nil || len(subs) != 2 {
		t.Errorf("got %+v (%v)", subs, err)
	}
	n := len(d.codes)
	d.command(flow.TypeResume, flow.ResumeCommand{URL: page, Receiver: "a"})
	if len(d.out) != 0 || len(d.codes) != n {
		t.Errorf("got %v and decisions %v of a second recovery", d.types(), d.codes[n:])
	}
}

func TestSetExpiry(t *testing.T) {
	for name, c := range map[string]struct {
		after, want int // 0: never
	}{"default": {0, 10}, "never": {-1, 0}, "two": {2, 2}} {
		d := newDesk(t, Config{Expire: pipeline.Expire{After: 5, Retry: -1}})
		d.stage.SetExpiry(pipeline.Expire{After: c.after, Retry: -1}, false)
		d.subscribe("a")
		got := 0
		for i := range 15 {
			if i > 0 {
				d.wake()
			}
			d.fail(pipeline.FailDNS)
			if slices.Contains(d.types(), flow.TypeEnded) {
				got = i + 1
				break
			}
		}
		if got != c.want {
			t.Errorf("%s: expired after %d, want %d", name, got, c.want)
		}
	}
	d := newDesk(t, Config{})
	var wg sync.WaitGroup
	wg.Go(func() { d.stage.SetExpiry(pipeline.Expire{After: 7}, true) })
	d.subscribe("a")
	wg.Wait()
	if r := d.stage.rulesNow(); r.Expire != (pipeline.Expire{After: 7, Retry: pipeline.DefaultExpire.Retry}) || !r.SelectorGone {
		t.Errorf("got %+v", r)
	}
}

// badState fails all reads of names that begin with bad.
type badState struct {
	flow.State
	bad string
}

var errDisk = errors.New("input/output error")

func (s badState) Get(name string) ([]byte, bool, error) {
	if strings.HasPrefix(name, s.bad) {
		return nil, false, errDisk
	}
	return s.State.Get(name)
}

func (s badState) Scan(prefix string) iter.Seq2[string, flow.Value] {
	if strings.HasPrefix(prefix, s.bad) {
		return func(yield func(string, flow.Value) bool) { yield("", flow.Value{Err: errDisk}) }
	}
	return s.State.Scan(prefix)
}

type badTx struct {
	*txtest.Tx
	bad string
}

func (t badTx) State(key string) flow.State { return badState{t.Tx.State(key), t.bad} }

func TestAStoreThatCannotBeReadIsBroken(t *testing.T) {
	for bad, m := range map[string]flow.Message{
		progressName: {Type: flow.TypeWake},
		"sub/":       {Type: flow.TypeExpire, Body: []byte(`{"url":"` + page + `","receiver":"s"}`)},
		"exp/":       {Type: flow.TypeResume, Body: []byte(`{"url":"` + page + `"}`)},
	} {
		d := newDesk(t, Config{Expire: pipeline.Expire{After: 1, Retry: -1}})
		d.subscribe("a")
		d.fail(pipeline.FailDNS)
		d.subscribe("b")
		m.ID, m.Key, m.Position = "m", page, "S/9"
		d.stage.cache.Drop(page)
		err := d.stage.Process(context.Background(), badTx{d.store.Begin(), bad}, m)
		if class, _ := failure.ClassOf(err); class != failure.ClassBroken || !errors.Is(err, errDisk) {
			t.Errorf("%s: got %v", bad, err)
		}
	}
}

// TestCacheBelievesWhatIsCommitted: a page that was stored, but not committed or in another epoch, is
// read from the state.
func TestCacheBelievesWhatIsCommitted(t *testing.T) {
	c := newCache()
	stored := txtest.New()
	store := func(stamp uint64) *txtest.Tx {
		t.Helper()
		tx := stored.Begin()
		was, err := c.load(tx, page, 1)
		if err == nil {
			err = c.store(tx, page, 1, was, &Page{URL: page, Incarnation: "i", Stamp: stamp, Progress: Progress{Check: stamp, Asked: t0}})
		}
		if err != nil {
			t.Fatal(err)
		}
		return tx
	}
	expect := func(epoch, want uint64) {
		t.Helper()
		got, err := c.load(stored.Begin(), page, epoch)
		if err != nil || got.page.Stamp != want || got.page.Check != want || !got.page.Asked.Equal(t0) {
			t.Errorf("got %+v, %v; want stamp %d", got, err, want)
		}
		if p, err := Load(stored.Begin().State(page)); err != nil || p.Stamp != want {
			t.Errorf("stored is %+v, %v; want stamp %d", p, err, want)
		}
	}
	store(1).Commit()
	expect(1, 1)
	store(2) // is never committed
	expect(1, 1)
	store(3).Commit()
	expect(1, 3)

	here := c
	c = newCache() // of another process, which owns the lane meanwhile
	store(4).Commit()
	c = here
	expect(2, 4)

	tx := stored.Begin()
	if err := tx.State(page).Set(pageName, []byte{format, 0xff}); err != nil {
		t.Fatal(err)
	}
	if _, err := Load(tx.State(page)); err == nil {
		t.Error("a damaged value is a page")
	}
}

// TestSizeOfCachedPages compares what pages say with the memory that they take.
func TestSizeOfCachedPages(t *testing.T) {
	const n = 5000
	stored, c := txtest.New(), newCache()
	heap := func() int64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	tx := stored.Begin()
	for i := range n {
		url := fmt.Sprint("https://example.com/", i)
		p := Page{URL: url, Incarnation: "a", Intervals: []intervalCount{{N: 1}}, Origins: []originCount{{"api", 1, 0}}, ETag: url, BodyHash: url + url}
		p.addDocument(pipeline.View{}).TextHash = url + url
		if err := newCache().store(tx, url, 1, nil, &p); err != nil {
			t.Fatal(err)
		}
	}
	tx.Commit()
	before := heap()
	for i := range n {
		url := fmt.Sprint("https://example.com/", i)
		p, err := Load(stored.Begin().State(url))
		if err == nil {
			err = c.store(stored.Begin(), url, 1, nil, &p)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	took := heap() - before
	if said := c.Bytes(); said < took/2 || said > took*2 {
		t.Errorf("%d pages of %d bytes say %d", n, took, said)
	}
	runtime.KeepAlive(c)
	runtime.KeepAlive(stored)
}

// between is a State during which commits happen: each reading of the progress is of an earlier one
// of these states, the last one for good.
type between struct {
	flow.State
	progress *[][]byte
}

func (s between) Get(name string) ([]byte, bool, error) {
	if earlier := *s.progress; name == progressName && len(earlier) > 0 {
		*s.progress = earlier[1:]
		return earlier[0], true, nil
	}
	return s.State.Get(name)
}

// TestLoadBesideCommits: a page whose progress was read before a commit is read again, and one whose
// parts never belong together is damaged.
func TestLoadBesideCommits(t *testing.T) {
	tx := txtest.New().Begin()
	st := tx.State(page)
	var progress [][]byte
	for stamp := range uint64(3) {
		if err := newCache().store(tx, page, 1, nil, &Page{URL: page, Incarnation: "i", Stamp: stamp}); err != nil {
			t.Fatal(err)
		}
		b, _, err := st.Get(progressName)
		if err != nil {
			t.Fatal(err)
		}
		progress = append(progress, b)
	}
	earlier := progress[:2]
	if p, err := Load(between{st, &earlier}); err != nil || p.Stamp != 2 {
		t.Errorf("got %+v, %v", p, err)
	}
	if err := st.Set(progressName, progress[0]); err != nil {
		t.Fatal(err)
	}
	if _, err := Load(st); err == nil || !strings.Contains(err.Error(), "damaged") {
		t.Errorf("got %v", err)
	}
}

// TestSameRest changes each field of a page and of its document, which sameRest must notice.
func TestSameRest(t *testing.T) {
	full := benchPage()
	full.Expiry, full.Gone = &Expiry{Class: "status"}, map[string]uint64{"x": 3}
	other := full.clone()
	other.Progress = Progress{Check: 7}
	if !full.sameRest(other) {
		t.Error("pages that differ in their progress have another rest")
	}
	fields := func(v reflect.Value, skip string, differs func() bool) {
		for i := range v.NumField() {
			f, name := v.Field(i), v.Type().Field(i).Name
			if name == skip {
				continue
			}
			was := reflect.New(f.Type()).Elem()
			was.Set(f)
			alterValue(f)
			if !differs() {
				t.Errorf("sameRest does not compare %s.%s", v.Type().Name(), name)
			}
			f.Set(was)
		}
	}
	other = full.clone()
	differs := func() bool { return !full.sameRest(other) }
	fields(reflect.ValueOf(other).Elem(), "Progress", differs)
	fields(reflect.ValueOf(&other.Documents[0]).Elem(), "View", differs)
}

// alterValue changes what v holds.
func alterValue(v reflect.Value) {
	switch v.Kind() {
	case reflect.String:
		v.SetString(v.String() + "x")
	case reflect.Bool:
		v.SetBool(!v.Bool())
	case reflect.Int, reflect.Int64:
		v.SetInt(v.Int() + 1)
	case reflect.Uint64:
		v.SetUint(v.Uint() + 1)
	case reflect.Slice:
		v.Set(reflect.Append(v, reflect.Zero(v.Type().Elem())))
	case reflect.Map:
		all := reflect.MakeMap(v.Type())
		all.SetMapIndex(reflect.ValueOf("another"), reflect.Zero(v.Type().Elem()))
		v.Set(all)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
	case reflect.Struct:
		if v.Type() != reflect.TypeFor[time.Time]() {
			alterValue(v.Field(0))
			return
		}
		v.Set(reflect.ValueOf(time.Unix(1, 0)))
	default:
		panic(v.Kind())
	}
}

// TestTimesOfRecords: a time that nanoseconds since 1970 do not hold, of a page that was pushed, is not
// taken for another one.
func TestTimesOfRecords(t *testing.T) {
	for year, want := range map[int]int{1500: 1970, 1970: 1970, 2026: 2026, 9999: 2262} {
		r := CheckRecord{Time: time.Date(year, 1, 1, 0, 0, 0, 0, time.UTC)}
		if got := r.stored(1).record().Time.Year(); got != want {
			t.Errorf("the year %d: got %d, want %d", year, got, want)
		}
	}
}
