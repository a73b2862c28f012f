package vokter

import (
	"fmt"
	"math"
	"net/netip"
	"reflect"
	"slices"
	"testing"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/registry"
)

// TestDefaultMemory: a quarter of what the process may use, within bounds.
func TestDefaultMemory(t *testing.T) {
	for limit, want := range map[int64]int64{
		0: 64e6, 100e6: 64e6, 400e6: 100e6, 4e9: 1e9, 64e9: 1e9, math.MaxInt64: 1e9,
	} {
		if got := defaultMemory(limit); got != want {
			t.Errorf("of %d bytes: %d, want %d", limit, got, want)
		}
	}
}

// fill sets all that can be reached from v to values made of n. If inPlace is set, it keeps the lists, maps and pointers
// of v and returns how many values in them it changed.
func fill(v reflect.Value, n int, inPlace bool) (changed int) {
	switch v.Interface().(type) {
	case netip.Prefix:
		v.Set(reflect.ValueOf(netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 0, 0, byte(n)}), 32)))
		return 1
	case registry.Secret:
		v.Set(reflect.ValueOf(registry.NewSecret(string(rune('a' + n)))))
		return 1
	}
	t := v.Type()
	switch t.Kind() {
	case reflect.String:
		v.SetString(string(rune('a' + n)))
	case reflect.Bool:
		v.SetBool(n%2 == 1)
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		v.SetInt(int64(n))
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		v.SetUint(uint64(n))
	case reflect.Float64:
		v.SetFloat(float64(n))
	case reflect.Struct:
		for i := range t.NumField() {
			if t.Field(i).IsExported() {
				changed += fill(v.Field(i), n, inPlace)
			}
		}
		return changed
	case reflect.Slice:
		if !inPlace {
			v.Set(reflect.MakeSlice(t, 1, 8))
		}
		return fill(v.Index(0), n, inPlace)
	case reflect.Map:
		if !inPlace {
			v.Set(reflect.MakeMap(t))
		}
		key, value := reflect.New(t.Key()).Elem(), reflect.New(t.Elem()).Elem()
		fill(key, 1, false)
		if inPlace {
			changed = fill(reflect.Append(reflect.MakeSlice(reflect.SliceOf(t.Elem()), 0, 1), v.MapIndex(key)).Index(0), n, true)
		}
		fill(value, n, false)
		v.SetMapIndex(key, value)
		return changed + 1
	case reflect.Pointer:
		if !isSetting(t.Elem()) {
			return 0
		}
		if !inPlace {
			v.Set(reflect.New(t.Elem()))
		}
		return fill(v.Elem(), n, inPlace)
	default: // plugins and functions
		return 0
	}
	return 1
}

// TestCloneSharesNothing edits all that can be reached from a Config in place: a clone of it stays as it was.
func TestCloneSharesNothing(t *testing.T) {
	var given, want Config
	fill(reflect.ValueOf(&given).Elem(), 1, false)
	fill(reflect.ValueOf(&want).Elem(), 1, false)
	if c := given.clone(); !reflect.DeepEqual(c, want) {
		t.Fatalf("the clone is not the same: %+v", c)
	}
	c := given.clone()
	if n := fill(reflect.ValueOf(&given).Elem(), 2, true); n < 100 {
		t.Errorf("only %d values were changed in place", n)
	}
	if reflect.DeepEqual(given, want) {
		t.Fatal("nothing was changed")
	}
	if !reflect.DeepEqual(c, want) {
		t.Errorf("the clone changed with what it was made of: %+v, want %+v", c, want)
	}
	if empty := (Config{Subscriptions: []pipeline.Subscription{}}).clone(); empty.Subscriptions == nil || empty.Documents != nil {
		t.Error("a list that is empty and one that is absent are not what they were")
	}
}

// TestNotificationLink: a notification links to its change on the web page.
func TestNotificationLink(t *testing.T) {
	r, err := New(Config{PublicURL: "https://vokter.example.com", Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		n    pipeline.Notification
		want string
	}{
		{pipeline.Notification{URL: "https://x.example/?a=b&c", Version: 3}, "/diff?document=d&to=3&url=https%3A%2F%2Fx.example%2F%3Fa%3Db%26c"},
		{pipeline.Notification{URL: "https://x.example/", Status: pipeline.StatusTimeout}, "/page?document=d&url=https%3A%2F%2Fx.example%2F"},
		{pipeline.Notification{URL: "https://x.example/", Version: 3, Type: pipeline.NotificationTypeDigest}, "/page?document=d&url=https%3A%2F%2Fx.example%2F"},
		{pipeline.Notification{Type: pipeline.NotificationTypeDigest, Items: []pipeline.Item{{URL: "https://x.example/"}}}, "/changes"},
		{pipeline.Notification{Health: &pipeline.Health{URL: "https://x.example/"}}, "/page?url=https%3A%2F%2Fx.example%2F"},
		{pipeline.Notification{Health: &pipeline.Health{}}, ""}, {pipeline.Notification{URL: "https://x.example/", Type: pipeline.NotificationTypeTest}, ""},
	} {
		want := c.want
		if want != "" {
			want = "https://vokter.example.com" + want
		}
		if got := r.notificationLink("d", c.n); got != want {
			t.Errorf("%+v: got %q, want %q", c.n, got, want)
		}
	}
}

// TestChangeSinks: a page gets its own sinks and those of all pages, each once, by the present
// configuration.
func TestChangeSinks(t *testing.T) {
	var r Router
	r.liveConfig.Store(&Config{Changes: []string{"b", "a"}, Documents: []Document{
		{URL: "https://example.com/none", Keep: true},
		{URL: "https://EXAMPLE.com:443/own", Keep: true, Changes: []string{"c", "b"}},
		{URL: "https://example.com/own", Keep: true, Changes: []string{"d"}},
	}})
	want := func(page string, sinks ...string) {
		t.Helper()
		if got := r.changeSinks(page); !slices.Equal(got, sinks) {
			t.Errorf("%s: got %q, want %q", page, got, sinks)
		}
	}
	want("https://example.com/own", "a", "b", "c")
	want("https://example.com/none", "b", "a")
	want("https://example.com/other", "b", "a")
	r.liveConfig.Store(&Config{Documents: []Document{{URL: "https://example.com/none", Keep: true, Changes: []string{"e"}}}})
	want("https://example.com/own")
	want("https://example.com/none", "e")
}

// TestChangeSinksOfManyDocuments: what a change costs does not grow with the documents of the
// configuration.
func TestChangeSinksOfManyDocuments(t *testing.T) {
	c := new(Config)
	for i := range 1000 {
		c.Documents = append(c.Documents, Document{URL: fmt.Sprintf("https://example.com/%d", i), Keep: true, Changes: []string{"s"}})
	}
	var r Router
	r.liveConfig.Store(c)
	if n := testing.AllocsPerRun(10, func() { r.changeSinks("https://example.com/999") }); n > 0 {
		t.Errorf("looking up the sinks of a page makes %v allocations", n)
	}
}
