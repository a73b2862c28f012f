package vokter

import (
	"net/netip"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/vokter/vokter/inspect"
	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/registry"
)

// fill sets all that can be reached from v to values made of n. In place it keeps the lists, maps and pointers that
// are there, and counts what it changes in them.
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

// TestReloadOfAnEditInPlace changes the lists and maps of the Config that New got, and gives it to Reload.
func TestReloadOfAnEditInPlace(t *testing.T) {
	box := newMailbox()
	cfg := Config{Sinks: map[string]pipeline.Sink{"box": box}, Subscriptions: []pipeline.Subscription{
		{URL: "http://127.0.0.1:1/a", Client: "c", Keywords: []string{"EUR"}, Sinks: []string{"box"}},
		{URL: "http://127.0.0.1:1/b", Client: "c", Keywords: []string{"EUR"}, Sinks: []string{"box"}},
	}, Delivery: DeliveryConfig{Retry: []time.Duration{time.Hour}}}
	r, stop := startRouter(t, cfg)
	defer stop()
	reload := func(lines ...string) {
		t.Helper()
		got, err := r.Reload(t.Context(), cfg)
		if err != nil || !slices.Equal(got, lines) {
			t.Errorf("Reload: %q, %v; want %q", got, err, lines)
		}
		waitForCommands(t, r)
	}
	cfg.Subscriptions[0].Keywords[0] = "USD"
	cfg.Subscriptions[1].Keywords = []string{"GBP"}
	cfg.Delivery.Retry[0] = time.Minute
	reload(`subscription changed: http://127.0.0.1:1/a for client "c"`, `subscription changed: http://127.0.0.1:1/b for client "c"`, "delivery changed")
	cfg.Sinks["other"] = box
	cfg.Subscriptions[1].Sinks[0] = "other"
	reload(`subscription changed: http://127.0.0.1:1/b for client "c"`, "sink added: other")
	waitFor(t, "the last lists", func() bool {
		l, err := r.List(t.Context(), inspect.ListFilter{})
		if err != nil || len(l.Pages) != 2 {
			return false
		}
		a, b := l.Pages[0].Subscriptions[0], l.Pages[1].Subscriptions[0]
		return slices.Equal(a.Keywords, []string{"USD"}) && slices.Equal(b.Keywords, []string{"GBP"}) && slices.Equal(b.Sinks, []string{"other"})
	})
}
